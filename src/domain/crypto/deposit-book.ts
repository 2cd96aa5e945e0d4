import { omitUndefined } from '../defined';
import { unapplied } from '../lifecycle';
import { parseUnits } from './assets';
import {
  amountReceived,
  classify,
  type Deposit,
  depositKey,
  isAnyPending,
  isConfirmed,
  isCounted,
  isHeldByScreening,
  isHeldLate,
  isInSuspense,
  isReorged,
  isRequestedAsset,
  isWaiting,
} from './deposit';
import type { CryptoPaymentAct, CryptoPaymentAttention, CryptoPaymentStatus } from './payment';

export interface DepositSet {
  status: CryptoPaymentStatus;
  /** Smallest units. */
  amount_due: string;
  deposits: readonly Deposit[];
  accepted: boolean;
  /** Rules of the run: absent, the first; 2: deposits in suspense, lateness by time, no dust. */
  revision?: number | undefined;
}

/**
 * Limit, because anybody can send small deposits to the address of a payment. Beyond it, a confirmed
 * deposit that completes the payment is still stored.
 */
export const DEPOSITS_MAX = 100;

export interface DepositReport {
  transaction_id: string;
  /** Smallest units. */
  amount: string;
  confirmations: number;
  /** ISO 8601, ms. */
  seen_at: string;
  /** ISO 8601, ms. */
  mined_at?: string;
  screening: 'passed' | 'failed' | null;
}

export interface DepositTerms {
  required_confirmations: number;
  /** ISO 8601, ms. */
  expires_at: string;
  /** Smallest units below which a deposit is dust, unless it completes the payment. */
  least_deposit?: string | undefined;
}

export type DepositChange =
  | { kind: 'changed'; deposits: Deposit[]; accepted?: true }
  | { kind: 'unapplied'; reason: string; attention?: CryptoPaymentAttention };

/** Applies a report of a deposit. A report never changes the amount of a counted deposit. */
export function applyDeposit(
  depositSet: DepositSet,
  report: DepositReport,
  terms: DepositTerms,
): DepositChange {
  const existing = findDeposit(depositSet, report);
  if (existing === undefined) return addDeposit(depositSet, report, terms);
  const { amount, confirmations, mined_at } = report;
  if (existing.status === 'pending') {
    const known = { ...existing, amount, confirmations, ...(mined_at && { mined_at }) };
    const late = postsSuspense(depositSet) ? isLate(known, terms) : existing.late;
    const screening = existing.screening ?? report.screening;
    const deposit = classify({ ...known, late, screening }, postsSuspense(depositSet));
    return replaceDeposit(depositSet, deposit);
  }
  if (existing.amount !== amount) {
    return unapplied('the deposit was reported with a different amount before', 'amount_differs');
  }
  if (existing.undone) {
    if (!isReorged(existing) && postsSuspense(depositSet)) {
      return unapplied('the deposit was given up before', 'amount_differs');
    }
    return replaceDeposit(depositSet, { ...existing, undone: false, confirmations });
  }
  if (confirmations <= existing.confirmations) return unapplied('the deposit is known already');
  return replaceDeposit(depositSet, { ...existing, confirmations });
}

function addDeposit(
  depositSet: DepositSet,
  report: DepositReport,
  terms: DepositTerms,
): DepositChange {
  const { required_confirmations, least_deposit = '0' } = terms;
  const { status, amount_due, deposits } = depositSet;
  const isByTime = postsSuspense(depositSet);
  const units = parseUnits(report.amount);
  const missing = parseUnits(amount_due) - amountReceived(deposits);
  const completes = missing > 0n && units >= missing;
  if (isByTime && !completes && units < parseUnits(least_deposit)) {
    return unapplied('the deposit is dust: nothing of it is credited');
  }
  if (
    deposits.length >= DEPOSITS_MAX &&
    !(isByTime && completes && isConfirmed({ ...report, required_confirmations }))
  ) {
    return unapplied('the payment has too many deposits', 'too_many_deposits');
  }
  const late = isLate(report, terms) || (!isByTime && status === 'expired');
  const newDeposit = { ...report, required_confirmations, late, undone: false };
  const deposit = classify({ ...newDeposit, status: 'pending' }, isByTime);
  return { kind: 'changed', deposits: [...deposits, deposit] };
}

/** Whether it was neither seen nor mined in time. */
function isLate(
  { seen_at, mined_at = seen_at }: Pick<DepositReport, 'seen_at' | 'mined_at'>,
  { expires_at }: DepositTerms,
): boolean {
  return (mined_at < seen_at ? mined_at : seen_at) > expires_at;
}

function postsSuspense({ revision = 1 }: Pick<DepositSet, 'revision'>): boolean {
  return revision >= 2;
}

/** Adds what came in another asset than the payment's: it is in suspense until it leaves. */
export function applyWrongAsset(
  depositSet: DepositSet,
  { asset, ...report }: Omit<DepositReport, 'screening'> & { asset: string | undefined },
  { required_confirmations }: DepositTerms,
): DepositChange {
  const reason = 'another asset came to the address';
  if (asset === undefined || !postsSuspense(depositSet)) return unapplied(reason, 'wrong_asset');
  const { deposits } = depositSet;
  const added = { ...report, asset };
  if (findDeposit(depositSet, added) !== undefined) return unapplied('it is known already');
  if (deposits.length >= DEPOSITS_MAX) return unapplied(reason, 'too_many_deposits');
  const state = { status: 'rejected', late: true, undone: false, screening: null } as const;
  return {
    kind: 'changed',
    deposits: [...deposits, { ...added, ...state, required_confirmations, held: true }],
  };
}

export function applyScreening(
  depositSet: DepositSet,
  transaction_id: string,
  screening: 'passed' | 'failed',
): DepositChange {
  const existing = findDeposit(depositSet, { transaction_id });
  if (existing?.status !== 'pending')
    return unapplied('the deposit is not waiting for a screening');
  const deposit = classify({ ...existing, screening }, postsSuspense(depositSet));
  return replaceDeposit(depositSet, deposit);
}

/** Removes a deposit that the chain reorganized; a counted one waits for an operator. */
export function applyReorg(
  depositSet: DepositSet,
  transaction_id: string,
  asset?: string,
): DepositChange {
  const existing = findDeposit(depositSet, { transaction_id, ...(asset && { asset }) });
  if (existing === undefined) return unapplied('no such deposit is known');
  if (existing.status === 'confirmed') {
    if (existing.undone) return unapplied('the deposit was already reported as reorged');
    return replaceDeposit(depositSet, { ...existing, undone: true });
  }
  if (isInSuspense(existing)) {
    if (existing.withdrawn) return unapplied('the deposit was debited', 'amount_differs');
    const left = { as: 'undone' } as const;
    return replaceDeposit(depositSet, { ...existing, status: 'rejected', undone: true, left });
  }
  if (existing.status === 'rejected') return unapplied('the deposit was rejected');
  const deposits = depositSet.deposits.filter((deposit) => deposit !== existing);
  return { kind: 'changed', deposits };
}

/** Names what an act changes. */
export interface ActTarget {
  /** Transaction of one deposit; absent: all to which the act applies. */
  deposit?: string | undefined;
  /** Transaction of the deposit to `confirm`, or the one that sent it back. */
  transaction_id?: string | undefined;
  /** Address to which it was sent back. */
  address?: string | undefined;
}

interface DepositAct {
  applies: (deposit: Deposit) => boolean;
  change: (deposit: Deposit, target: ActTarget, posts: boolean) => Deposit;
  fault?: string;
}

/** Acts that change deposits. */
type DepositActName = Exclude<CryptoPaymentAct, 'snooze' | 'acknowledge'>;

const DEPOSIT_ACTS: Record<Exclude<DepositActName, 'accept'>, DepositAct> = {
  release: {
    applies: isHeldByScreening,
    change: (deposit, _, posts) => classify({ ...deposit, screening: 'passed' }, posts),
    fault: 'No deposit is held by its screening.',
  },
  reject: {
    applies: isWaiting,
    change: (deposit, _, posts) => ({
      ...deposit,
      status: 'rejected',
      ...(posts ? { held: true } : {}),
    }),
    fault: 'No deposit waits for an operator.',
  },
  credit_late: {
    applies: isHeldLate,
    change: (deposit) => ({ ...deposit, status: 'confirmed' }),
    fault: 'No late deposit waits to be credited.',
  },
  return: {
    applies: (deposit) => isCounted(deposit) && !deposit.undone,
    change: (deposit, _, posts) => ({
      ...deposit,
      status: 'rejected',
      returned: true,
      ...(posts ? { withdrawn: true } : {}),
    }),
    fault: 'No deposit has counted.',
  },
  mark_sent_back: {
    applies: isInSuspense,
    change: (deposit, { transaction_id, address }) => ({
      ...deposit,
      status: 'rejected',
      left: { as: 'returned', ...omitUndefined({ transaction_id, address }) },
    }),
    fault: 'No deposit is in suspense.',
  },
  write_off: {
    applies: (deposit) => isInSuspense(deposit) || isReorged(deposit),
    change: (deposit) => ({
      ...deposit,
      status: isReorged(deposit) ? 'confirmed' : 'rejected',
      left: { as: 'written_off' },
    }),
    fault: 'No deposit is in suspense, and none that was credited is gone.',
  },
  debit_reorged: {
    applies: isReorged,
    change: (deposit) => ({ ...deposit, status: 'rejected', returned: true }),
    fault: 'No deposit that was credited is gone from the chain.',
  },
  confirm: {
    applies: (deposit) => deposit.status === 'pending' && !isConfirmed(deposit),
    change: (deposit, _, posts) => {
      const confirmations = Math.max(deposit.confirmations, deposit.required_confirmations);
      // Without a verdict it still waits for its screening.
      return classify({ ...deposit, confirmations }, posts);
    },
    fault: 'No deposit of this transaction waits for its confirmations.',
  },
};

/** Selects the deposits that an act changes. */
function isTarget(act: DepositActName, target: ActTarget, { transaction_id }: Deposit): boolean {
  const named = act === 'confirm' ? (target.transaction_id ?? '') : target.deposit;
  return named === undefined || named === transaction_id;
}

export function actOnDeposits(
  depositSet: DepositSet,
  act: DepositActName,
  target: ActTarget = {},
): DepositChange {
  const { deposits } = depositSet;
  if (act === 'accept') return { kind: 'changed', deposits: [...deposits], accepted: true };
  const { applies, change } = DEPOSIT_ACTS[act];
  const changed = deposits.map((deposit) =>
    applies(deposit) && isTarget(act, target, deposit)
      ? change(deposit, target, postsSuspense(depositSet))
      : deposit,
  );
  return { kind: 'changed', deposits: changed };
}

/**
 * Explains to the operator why the act is not possible now; undefined if it is.
 * @param isOpen whether the payer still has time
 */
export function depositActFault(
  { deposits }: Pick<DepositSet, 'deposits'>,
  act: CryptoPaymentAct,
  isOpen: boolean,
  target?: ActTarget,
): string | undefined {
  if (act === 'accept' || act === 'snooze' || act === 'acknowledge') return undefined;
  if (act === 'return' && isOpen) {
    return 'The payer may still send the rest: wait until the window closes.';
  }
  if (act === 'return' && isAnyPending(deposits)) return 'A deposit is not confirmed yet.';
  const { applies, fault } = DEPOSIT_ACTS[act];
  const isPossible = (deposit: Deposit) =>
    applies(deposit) && (target === undefined || isTarget(act, target, deposit));
  return deposits.some(isPossible) ? undefined : fault;
}

/**
 * Computes the state from the deposits. A received payment stays received; an expired one changes
 * only when an operator credits late funds.
 */
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

/** Attention reasons of deposits; the first that applies is shown. */
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

/** @param acknowledged reasons that an operator has acknowledged: the next one is shown */
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

/** Finds the reasons that apply to more deposits than before. */
export function findNewReasons(
  before: readonly Deposit[],
  after: readonly Deposit[],
): CryptoPaymentAttention[] {
  return DEPOSIT_REASONS.filter(
    ({ applies }) => after.filter(applies).length > before.filter(applies).length,
  ).map(({ reason }) => reason);
}

function findDeposit(
  { deposits }: DepositSet,
  { transaction_id, asset }: Pick<Deposit, 'transaction_id' | 'asset'>,
): Deposit | undefined {
  const key = depositKey({ transaction_id, ...(asset && { asset }) });
  return deposits.find((deposit) => depositKey(deposit) === key);
}

function replaceDeposit({ deposits }: DepositSet, change: Deposit): DepositChange {
  const key = depositKey(change);
  return {
    kind: 'changed',
    deposits: deposits.map((deposit) => (depositKey(deposit) === key ? change : deposit)),
  };
}
