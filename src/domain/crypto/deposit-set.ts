import { parseUnits } from './assets';
import { amountReceived, type Deposit, depositKey, isHeldByScreening } from './deposit';
import type { CryptoPaymentAttention, CryptoPaymentStatus } from './payment';

export interface DepositSet {
  status: CryptoPaymentStatus;
  /** Smallest units. */
  amount_due: string;
  deposits: readonly Deposit[];
  accepted: boolean;
}

/**
 * Bound, since anybody can send deposits to an address. A confirmed deposit beyond it that
 * completes the payment is still stored.
 */
export const DEPOSITS_MAX = 100;

export type DepositChange =
  | { kind: 'changed'; deposits: Deposit[]; accepted?: true }
  | { kind: 'unapplied'; reason: string; attention?: CryptoPaymentAttention };

/** Keeps `received`; `expired` changes only when an operator credits late funds. */
export function computeStatus(depositSet: DepositSet, isOpen: boolean): CryptoPaymentStatus {
  const { status, amount_due, deposits, accepted } = depositSet;
  if (status === 'received') return 'received';
  const receivedUnits = amountReceived(deposits);
  if (status === 'expired' && receivedUnits === 0n) return 'expired';
  if (deposits.some((deposit) => !deposit.late && isHeldByScreening(deposit))) return 'held';
  if (receivedUnits >= parseUnits(amount_due) || (accepted && receivedUnits > 0n))
    return 'received';
  if (receivedUnits > 0n) return 'underpaid';
  const hasPendingInTime = deposits.some(({ status, late }) => status === 'pending' && !late);
  return isOpen || hasPendingInTime ? 'awaiting_deposit' : 'expired';
}

/** Finds the latest, where the chain had it several times. */
export function findDeposit(
  { deposits }: DepositSet,
  { transaction_id, asset }: Pick<Deposit, 'transaction_id' | 'asset'>,
): Deposit | undefined {
  return deposits.findLast(
    (deposit) => deposit.transaction_id === transaction_id && deposit.asset === asset,
  );
}

export function replaceDeposit({ deposits }: DepositSet, change: Deposit): DepositChange {
  const key = depositKey(change);
  return {
    kind: 'changed',
    deposits: deposits.map((deposit) => (depositKey(deposit) === key ? change : deposit)),
  };
}
