import { coinOfBook } from '../domain/crypto';
import { formatMoney } from '../domain/money';
import { CliFailure } from './failure';

/** Minor units above which a second operator approves a correction on live, where none is set. */
export const APPROVAL_LIMIT = 100_000;

/** Credit or correction that an operator asks for. */
interface Asked {
  livemode: boolean;
  currency: string;
  /** Minor units, or the smallest of a coin; its sign does not count. */
  amount: number | bigint;
  operator: string | undefined;
  approvedBy: string | undefined;
}

/**
 * Holds an operator's act against the rule of two persons. Both are names until there is single
 * sign-on; the audit log holds the system user who typed them. Coins have no limit: none is approved by
 * one person.
 * @param limit minor units
 * @throws CliFailure `approval_required`
 */
export function assertApproved(
  limit: number,
  { livemode, currency, amount, operator, approvedBy }: Asked,
): void {
  if (approvedBy !== undefined && approvedBy.toLowerCase() === operator?.toLowerCase()) {
    throw new CliFailure('approval_required', 'The second operator must be another person.');
  }
  if (approvedBy !== undefined && operator === undefined) {
    const message = 'An approval needs the first operator, too: add --operator.';
    throw new CliFailure('approval_required', message);
  }
  if (!livemode || approvedBy !== undefined) return;
  const isCoin = coinOfBook(currency) !== undefined;
  if (!isCoin && amount <= limit && -amount <= limit) return;
  const what = isCoin ? 'a correction of coins' : `more than ${formatMoney(limit, currency)}`;
  throw new CliFailure(
    'approval_required',
    `On live, ${what} needs a second operator: add --approved-by. Nothing was posted.`,
  );
}
