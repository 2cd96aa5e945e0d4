import { unapplied } from '../lifecycle';
import { parseUnits } from './assets';
import {
  amountReceived,
  classify,
  type Deposit,
  isAnyPending,
  isCounted,
  isHeldByScreening,
  isHeldLate,
  isWaiting,
} from './deposit';
import type { CryptoPaymentAct, CryptoPaymentAttention, CryptoPaymentStatus } from './payment';

export interface DepositSet {
  status: CryptoPaymentStatus;
  /** Smallest units. */
  amount_due: string;
  deposits: readonly Deposit[];
  accepted: boolean;
}

/** Limit, because anybody can send dust to the address of a payment. */
export const DEPOSITS_MAX = 100;

export interface DepositReport {
  transaction_id: string;
  /** Smallest units. */
  amount: string;
  confirmations: number;
  /** ISO 8601, ms. */
  seen_at: string;
  screening: 'passed' | 'failed' | null;
}

export interface DepositTerms {
  required_confirmations: number;
  /** ISO 8601, ms. */
  expires_at: string;
}

export type DepositChange =
  | { kind: 'changed'; deposits: Deposit[]; accepted?: true }
  | { kind: 'unapplied'; reason: string; attention?: CryptoPaymentAttention };

/** Applies a report of a deposit. A report never changes the amount of a counted deposit. */
export function applyDeposit(
  depositSet: DepositSet,
  report: DepositReport,
  { required_confirmations, expires_at }: DepositTerms,
): DepositChange {
  const existing = findDeposit(depositSet, report.transaction_id);
  if (existing === undefined) {
    if (depositSet.deposits.length >= DEPOSITS_MAX) {
      return unapplied('the payment has too many deposits', 'too_many_deposits');
    }
    const late = depositSet.status === 'expired' || report.seen_at > expires_at;
    const newDeposit = { ...report, required_confirmations, late, undone: false };
    const deposit = classify({ ...newDeposit, status: 'pending' });
    return { kind: 'changed', deposits: [...depositSet.deposits, deposit] };
  }
  const { amount, confirmations } = report;
  if (existing.status === 'pending') {
    const screening = existing.screening ?? report.screening;
    return replaceDeposit(depositSet, classify({ ...existing, amount, confirmations, screening }));
  }
  if (existing.amount !== amount) {
    return unapplied('the deposit was reported with a different amount before', 'amount_differs');
  }
  if (existing.undone)
    return replaceDeposit(depositSet, { ...existing, undone: false, confirmations });
  if (confirmations <= existing.confirmations) return unapplied('the deposit is known already');
  return replaceDeposit(depositSet, { ...existing, confirmations });
}

export function applyScreening(
  depositSet: DepositSet,
  transaction_id: string,
  screening: 'passed' | 'failed',
): DepositChange {
  const existing = findDeposit(depositSet, transaction_id);
  if (existing?.status !== 'pending')
    return unapplied('the deposit is not waiting for a screening');
  return replaceDeposit(depositSet, classify({ ...existing, screening }));
}

/** Removes a deposit that the chain reorganized; a counted one waits for an operator. */
export function applyReorg(depositSet: DepositSet, transaction_id: string): DepositChange {
  const existing = findDeposit(depositSet, transaction_id);
  if (existing === undefined) return unapplied('no such deposit is known');
  if (existing.status === 'confirmed') {
    if (existing.undone) return unapplied('the deposit was already reported as reorged');
    return replaceDeposit(depositSet, { ...existing, undone: true });
  }
  if (existing.status === 'rejected') return unapplied('the deposit was rejected');
  const deposits = depositSet.deposits.filter(
    (deposit) => deposit.transaction_id !== transaction_id,
  );
  return { kind: 'changed', deposits };
}

interface DepositAct {
  applies: (deposit: Deposit) => boolean;
  change: (deposit: Deposit) => Deposit;
  fault?: string;
}

const reject = (deposit: Deposit): Deposit => ({ ...deposit, status: 'rejected' });
/** Acts that change deposits. */
type DepositActName = Exclude<CryptoPaymentAct, 'snooze' | 'acknowledge'>;

const DEPOSIT_ACTS: Record<Exclude<DepositActName, 'accept'>, DepositAct> = {
  release: {
    applies: isHeldByScreening,
    change: (deposit) => classify({ ...deposit, screening: 'passed' }),
    fault: 'No deposit is held by its screening.',
  },
  reject: { applies: isWaiting, change: reject, fault: 'No deposit waits for an operator.' },
  credit_late: {
    applies: isHeldLate,
    change: (deposit) => ({ ...deposit, status: 'confirmed' }),
    fault: 'No late deposit waits to be credited.',
  },
  return: { applies: isCounted, change: (deposit) => ({ ...reject(deposit), returned: true }) },
};

export function actOnDeposits({ deposits }: DepositSet, act: DepositActName): DepositChange {
  if (act === 'accept') return { kind: 'changed', deposits: [...deposits], accepted: true };
  const { applies, change } = DEPOSIT_ACTS[act];
  const changed = deposits.map((deposit) => (applies(deposit) ? change(deposit) : deposit));
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
): string | undefined {
  if (act === 'accept' || act === 'snooze' || act === 'acknowledge') return undefined;
  if (act === 'return' && isOpen) {
    return 'The payer may still send the rest: wait until the window closes.';
  }
  if (act === 'return' && isAnyPending(deposits)) return 'A deposit is not confirmed yet.';
  const { applies, fault } = DEPOSIT_ACTS[act];
  return deposits.some(applies) ? undefined : fault;
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
  { reason: 'deposit_undone', applies: ({ undone }) => undone },
  { reason: 'deposit_held', applies: isHeldByScreening },
  { reason: 'late_deposit', applies: isHeldLate },
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

function findDeposit({ deposits }: DepositSet, transaction_id: string): Deposit | undefined {
  return deposits.find((deposit) => deposit.transaction_id === transaction_id);
}

function replaceDeposit({ deposits }: DepositSet, change: Deposit): DepositChange {
  const { transaction_id } = change;
  return {
    kind: 'changed',
    deposits: deposits.map((deposit) =>
      deposit.transaction_id === transaction_id ? change : deposit,
    ),
  };
}
