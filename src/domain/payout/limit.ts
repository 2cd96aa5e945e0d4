import type { RuleViolation } from '../errors';
import { formatMoney } from '../money/money';

/** Returns 0 for a currency without a limit once any other has one. */
export function findPayoutLimit(
  limits: Readonly<Record<string, number>> = {},
  currency: string,
): number | undefined {
  return limits[currency] ?? (Object.keys(limits).length === 0 ? undefined : 0);
}

/**
 * Held in the transaction that reserves the money, activities/payouts.ts.
 * @param spentToday minor units of today's other payouts
 */
export function limitFault(
  limit: number | undefined,
  spentToday: number,
  { amount, currency }: { amount: number; currency: string },
): RuleViolation | undefined {
  if (limit === undefined || spentToday + amount <= limit) return undefined;
  const remaining = formatMoney(Math.max(0, limit - spentToday), currency);
  const message = `The account can pay out ${remaining} more today (UTC).`;
  return { code: 'payout_limit_exceeded', message };
}
