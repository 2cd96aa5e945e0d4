import { formatAmount } from '../amount';
import type { RuleViolation } from '../lifecycle';

export interface AvailableBalance {
  balance_account: string;
  /** ISO 4217, or the book currency of an asset. */
  currency: string;
  /** Minor units of a currency, or smallest units of an asset. */
  available: number | bigint;
}

export interface Debit {
  balance_account: string;
  currency: string;
  /** Units, fees included. */
  amount: number | bigint;
}

/** @param rows all balances of the account in its environment */
export function balanceFault(
  rows: readonly AvailableBalance[],
  debit: Debit,
): RuleViolation | undefined {
  return findAvailable(rows, debit) < debit.amount ? insufficientBalance(rows, debit) : undefined;
}

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

function findAvailable(
  rows: readonly AvailableBalance[],
  { balance_account, currency }: Debit,
): number | bigint {
  const balance = rows.find(
    (row) => row.balance_account === balance_account && row.currency === currency,
  );
  return balance?.available ?? 0;
}
