import { type DepositReason, isInSuspense, type Movement } from '../banks/movement';
import { parseUnits } from './assets';
import { amountReceived, type Deposit, isHeldByScreening } from './deposit';
import type { DepositStep } from './deposit-money';
import type { CryptoPaymentAttention, CryptoPaymentStatus } from './payment';

export interface DepositSet {
  status: CryptoPaymentStatus;
  /** Smallest units that make it received: the amount due, less the tolerance. */
  sufficient: string;
  deposits: readonly Deposit[];
  /** Rows of the register. */
  movements: readonly Movement[];
  accepted: boolean;
}

/**
 * Bound, since anybody can send deposits to an address. A confirmed deposit beyond it that
 * completes the payment is still stored.
 */
export const DEPOSITS_MAX = 100;

export type DepositChange =
  | { kind: 'changed'; deposits: Deposit[]; steps: DepositStep[]; accepted?: true }
  | { kind: 'unapplied'; reason: string; attention?: CryptoPaymentAttention };

/** Keeps `received`; `expired` changes only when an operator credits late funds. */
export function computeStatus(
  depositSet: Omit<DepositSet, 'movements'>,
  isOpen: boolean,
): CryptoPaymentStatus {
  const { status, sufficient, deposits, accepted } = depositSet;
  if (status === 'received') return 'received';
  const receivedUnits = amountReceived(deposits);
  if (status === 'expired' && receivedUnits === 0n) return 'expired';
  if (deposits.some((deposit) => !deposit.late && isHeldByScreening(deposit))) return 'held';
  if (receivedUnits >= parseUnits(sufficient) || (accepted && receivedUnits > 0n))
    return 'received';
  if (receivedUnits > 0n) return 'underpaid';
  const hasPendingInTime = deposits.some(({ status, late }) => status === 'pending' && !late);
  return isOpen || hasPendingInTime ? 'awaiting_deposit' : 'expired';
}

/** Lists one for each time that the chain had it, the first one first. */
export function listSame(
  { deposits }: Pick<DepositSet, 'deposits'>,
  { transaction_id, asset }: Pick<Deposit, 'transaction_id' | 'asset'>,
): Deposit[] {
  return deposits.filter(
    (deposit) => deposit.transaction_id === transaction_id && deposit.asset === asset,
  );
}

export function replaceDeposit(
  { deposits }: Pick<DepositSet, 'deposits'>,
  change: Deposit,
  steps: DepositStep[] = [],
): DepositChange {
  return {
    kind: 'changed',
    deposits: deposits.map((deposit) => (deposit.key === change.key ? change : deposit)),
    steps,
  };
}

/** The first that a movement in suspense has is shown. */
const DEPOSIT_REASONS = [
  'deposit_undone',
  'deposit_held',
  'late_deposit',
  'wrong_asset',
  'deposit_to_return',
] as const satisfies readonly DepositReason[];

/** @param acknowledged reasons that are not shown again; those of movements are always shown */
export function getDepositAttention(
  { status, movements }: Pick<DepositSet, 'status' | 'movements'>,
  isOpen: boolean,
  acknowledged: ReadonlySet<CryptoPaymentAttention> = new Set(),
): CryptoPaymentAttention | null {
  const held = movements.filter(isInSuspense);
  const ofMovement = DEPOSIT_REASONS.find((each) => held.some(({ reason }) => reason === each));
  if (ofMovement !== undefined) return ofMovement;
  const isUnderpaid = status === 'underpaid' && !isOpen && !acknowledged.has('underpaid');
  return isUnderpaid ? 'underpaid' : null;
}

export function outranksReason(
  reason: CryptoPaymentAttention,
  other: CryptoPaymentAttention,
): boolean {
  const ranks: readonly CryptoPaymentAttention[] = DEPOSIT_REASONS;
  return ranks.includes(reason) && ranks.indexOf(reason) < ranks.indexOf(other);
}
