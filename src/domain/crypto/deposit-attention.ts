import { type DepositReason, isInSuspense } from '../movement/movement';
import type { DepositSet } from './deposit-set';
import type { CryptoPaymentAttention } from './payment';

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
