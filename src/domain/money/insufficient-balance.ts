import type { RuleViolation } from '../errors';
import { formatAmount, formatMoney } from './money';

export interface AvailableBalance {
  balance_account: string;
  /** ISO 4217, or an asset's book currency. */
  currency: string;
  /** Minor units, or an asset's smallest. */
  available: number | bigint;
}

export interface Debit extends Pick<AvailableBalance, 'balance_account' | 'currency'> {
  /** Fees included. */
  amount: number | bigint;
  withheld?: bigint;
}

/**
 * Refuses early; the entry decides.
 * @see src/ledger/insufficient-balance.ts
 * @param rows all balances of the account in its environment
 */
export function balanceFault(
  rows: readonly AvailableBalance[],
  debit: Debit,
): RuleViolation | undefined {
  const available = BigInt(findAvailable(rows, debit)) - (debit.withheld ?? 0n);
  return available < debit.amount ? insufficientBalance(rows, debit) : undefined;
}

export function insufficientBalance(
  rows: readonly AvailableBalance[],
  debit: Debit,
): RuleViolation {
  const available = formatAmount(findAvailable(rows, debit), debit.currency);
  const needed = formatAmount(debit.amount, debit.currency);
  const { withheld = 0n, currency } = debit;
  const rest =
    withheld === 0n
      ? ''
      : ` ${formatAmount(withheld, currency)} is held back, since the chain has removed a deposit.`;
  const message = `The balance has ${available}; ${needed} is needed.${rest}`;
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

/** Refuses all payouts while the debt is above the allowed, in minor units. */
export function debtFault(
  owed: number,
  owedMax: number | undefined,
  currency: string,
): RuleViolation | undefined {
  if (owed <= (owedMax ?? 0)) return undefined;
  const message =
    `You owe ${formatMoney(owed, currency)}, which is collected from what comes in: nothing in ` +
    `${currency} is paid out until then.`;
  return { code: 'insufficient_balance', message };
}
