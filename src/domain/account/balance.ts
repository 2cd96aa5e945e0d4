import { formatAmount } from '../amount';
import type { RuleViolation } from '../lifecycle';

export interface AvailableBalance {
  balance_account: string;
  /** ISO 4217, or the book currency of an asset. */
  currency: string;
  /** Minor units of a currency, or smallest units of an asset. */
  available: number | bigint;
}

export interface Debit extends Pick<AvailableBalance, 'balance_account' | 'currency'> {
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
  const available = formatAmount(findAvailable(rows, debit), debit.currency);
  const needed = formatAmount(debit.amount, debit.currency);
  const message = `The balance has ${available}; ${needed} is needed.`;
  return { code: 'insufficient_balance', message };
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
