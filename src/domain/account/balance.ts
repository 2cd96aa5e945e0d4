import { formatUnits, parseBookCurrency } from '../crypto/assets';
import type { RuleViolation } from '../lifecycle';
import { formatMoney } from '../money';

/** Balance as far as it decides on a debit: minor units, or an asset's smallest. */
export interface AvailableBalance {
  balance_account: string;
  /** ISO 4217, or the book of an asset. @see src/domain/crypto/assets.ts */
  currency: string;
  available: number | bigint;
}

export interface Debit {
  balance_account: string;
  currency: string;
  /** Units, fees included. */
  amount: number | bigint;
}

/**
 * Refuses a debit that its balance does not cover; undefined if it does.
 * @param rows all balances of the account in its environment
 */
export function balanceFault(
  rows: readonly AvailableBalance[],
  debit: Debit,
): RuleViolation | undefined {
  return findAvailable(rows, debit) < debit.amount ? insufficientBalance(rows, debit) : undefined;
}

/** Refusal of a debit that its balance does not hold. */
export function insufficientBalance(
  rows: readonly AvailableBalance[],
  debit: Debit,
): RuleViolation {
  const [available, needed] = [findAvailable(rows, debit), debit.amount].map((units) =>
    formatAmount(units, debit.currency),
  );
  return {
    code: 'insufficient_balance',
    message: `The balance has ${available}; ${needed} is needed.`,
  };
}

/** Units that are available; 0 where the balance was never credited. */
function findAvailable(
  rows: readonly AvailableBalance[],
  { balance_account, currency }: Debit,
): number | bigint {
  const balance = rows.find(
    (row) => row.balance_account === balance_account && row.currency === currency,
  );
  return balance?.available ?? 0;
}

/** Amount for people. @param units minor units, or an asset's smallest */
function formatAmount(units: number | bigint, currency: string): string {
  const asset = parseBookCurrency(currency);
  return asset === undefined ? formatMoney(units, currency) : formatUnits(BigInt(units), asset);
}
