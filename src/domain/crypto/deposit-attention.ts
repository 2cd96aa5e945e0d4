import {
  type Deposit,
  isHeldByScreening,
  isHeldLate,
  isInSuspense,
  isReorged,
  isRequestedAsset,
  isWaiting,
} from './deposit';
import type { DepositSet } from './deposit-set';
import type { CryptoPaymentAttention } from './payment';

/** The first that applies is shown. */
const DEPOSIT_REASONS = [
  { reason: 'deposit_undone', applies: isReorged },
  { reason: 'deposit_held', applies: isHeldByScreening },
  { reason: 'late_deposit', applies: isHeldLate },
  {
    reason: 'wrong_asset',
    applies: (deposit) => isInSuspense(deposit) && !isRequestedAsset(deposit),
  },
  {
    reason: 'deposit_to_return',
    applies: (deposit) => isInSuspense(deposit) && !isWaiting(deposit) && isRequestedAsset(deposit),
  },
] as const satisfies { reason: CryptoPaymentAttention; applies: (deposit: Deposit) => boolean }[];

/** @param acknowledged reasons that are not shown again */
export function getDepositAttention(
  { status, deposits }: Pick<DepositSet, 'status' | 'deposits'>,
  isOpen: boolean,
  acknowledged: ReadonlySet<CryptoPaymentAttention> = new Set(),
): CryptoPaymentAttention | null {
  const isUnderpaid = status === 'underpaid' && !isOpen;
  const reasons: readonly CryptoPaymentAttention[] = [
    ...DEPOSIT_REASONS.filter(({ applies }) => deposits.some(applies)).map(({ reason }) => reason),
    ...(isUnderpaid ? (['underpaid'] as const) : []),
  ];
  return reasons.find((reason) => !acknowledged.has(reason)) ?? null;
}

export function findNewReasons(
  before: readonly Deposit[],
  after: readonly Deposit[],
): CryptoPaymentAttention[] {
  return DEPOSIT_REASONS.filter(
    ({ applies }) => after.filter(applies).length > before.filter(applies).length,
  ).map(({ reason }) => reason);
}
