import { assertNever } from './assert';
import { unitsOf } from './crypto';
import type {
  CryptoPaymentAct,
  CryptoPaymentAttention,
  CryptoPaymentStatus,
} from './crypto-payment';
import {
  amountReceived,
  classified,
  type Deposit,
  isAnyPending,
  isCounted,
  isHeldByScreening,
  isHeldLate,
  isWaiting,
} from './deposit';

/** Deposits of a payment, and all else that decides on its state. */
export interface DepositBook {
  status: CryptoPaymentStatus;
  /** Smallest units. */
  amount_due: string;
  deposits: readonly Deposit[];
  /** Whether an operator took the deposits as they are. */
  accepted: boolean;
}

/** Deposits that one payment remembers, since anybody may send dust to an address. */
export const DEPOSITS_MAX = 100;

/** Report of a deposit. */
export interface DepositReport {
  transaction_id: string;
  /** Smallest units. */
  amount: string;
  confirmations: number;
  /** ISO 8601, ms. */
  seen_at: string;
  screening: 'passed' | 'failed' | null;
}

/** Rules of one payment about its deposits. */
export interface DepositTerms {
  required_confirmations: number;
  /** ISO 8601, ms. */
  expires_at: string;
}

/** Outcome of a change to the book. */
export type DepositChange =
  | { kind: 'changed'; deposits: Deposit[]; accepted?: true }
  | { kind: 'unapplied'; reason: string; attention?: CryptoPaymentAttention };

const unapplied = (reason: string, attention?: CryptoPaymentAttention): DepositChange => ({
  kind: 'unapplied',
  reason,
  ...(attention === undefined ? {} : { attention }),
});

/** Takes in a report of a deposit; pure. A deposit that counts never changes by a report. */
export function takeDeposit(
  book: DepositBook,
  report: DepositReport,
  { required_confirmations, expires_at }: DepositTerms,
): DepositChange {
  const known = depositOf(book, report.transaction_id);
  if (known === undefined) {
    if (book.deposits.length >= DEPOSITS_MAX) {
      return unapplied('too many deposits are known already', 'too_many_deposits');
    }
    const late = book.status === 'expired' || report.seen_at > expires_at;
    const fresh = { ...report, required_confirmations, late, undone: false };
    const deposit = classified({ ...fresh, status: 'pending' });
    return { kind: 'changed', deposits: [...book.deposits, deposit] };
  }
  const { amount, confirmations } = report;
  if (known.status === 'pending') {
    const screening = known.screening ?? report.screening;
    return changed(book, classified({ ...known, amount, confirmations, screening }));
  }
  if (known.amount !== amount) {
    return unapplied('the deposit was taken in with another amount', 'amount_differs');
  }
  if (known.undone) return changed(book, { ...known, undone: false, confirmations });
  if (confirmations <= known.confirmations) return unapplied('the deposit is known already');
  return changed(book, { ...known, confirmations });
}

/** Takes in the verdict on a deposit's source; pure. */
export function screenDeposit(
  book: DepositBook,
  transaction_id: string,
  screening: 'passed' | 'failed',
): DepositChange {
  const known = depositOf(book, transaction_id);
  if (known?.status !== 'pending') return unapplied('the deposit does not wait for it');
  return changed(book, classified({ ...known, screening }));
}

/**
 * Takes in that the chain gave a deposit up; pure. One that does not count yet is forgotten, and one
 * that does is for a person.
 */
export function undoDeposit(book: DepositBook, transaction_id: string): DepositChange {
  const known = depositOf(book, transaction_id);
  if (known === undefined) return unapplied('no such deposit is known');
  if (known.status === 'confirmed') {
    if (known.undone) return unapplied('the deposit is known as undone already');
    return changed(book, { ...known, undone: true });
  }
  if (known.status === 'rejected') return unapplied('the deposit was rejected');
  const deposits = book.deposits.filter((deposit) => deposit.transaction_id !== transaction_id);
  return { kind: 'changed', deposits };
}

/** Applies an operator's act; pure. */
export function actOnDeposits(
  book: DepositBook,
  act: Exclude<CryptoPaymentAct, 'snooze'>,
): DepositChange {
  const each = (change: (deposit: Deposit) => Deposit): DepositChange => ({
    kind: 'changed',
    deposits: book.deposits.map(change),
  });
  switch (act) {
    case 'release':
      return each((deposit) =>
        isHeldByScreening(deposit) ? classified({ ...deposit, screening: 'passed' }) : deposit,
      );
    case 'reject':
      return each((deposit) => (isWaiting(deposit) ? { ...deposit, status: 'rejected' } : deposit));
    case 'credit_late':
      return each((deposit) =>
        isHeldLate(deposit) ? { ...deposit, status: 'confirmed' } : deposit,
      );
    case 'accept':
      return { kind: 'changed', deposits: [...book.deposits], accepted: true };
    case 'return':
      return each((deposit) =>
        isCounted(deposit) ? { ...deposit, status: 'rejected', returned: true } : deposit,
      );
    default:
      return assertNever(act);
  }
}

/**
 * Why an operator can't do it now, in words; undefined when it can be done.
 * @param isOpen whether the payer still has time
 */
export function depositActFault(
  { deposits }: Pick<DepositBook, 'deposits'>,
  act: CryptoPaymentAct,
  isOpen: boolean,
): string | undefined {
  switch (act) {
    case 'release':
      return deposits.some(isHeldByScreening) ? undefined : 'No deposit is held by its screening.';
    case 'reject':
      return deposits.some(isWaiting) ? undefined : 'No deposit waits for an operator.';
    case 'credit_late':
      return deposits.some(isHeldLate) ? undefined : 'No late deposit waits to be credited.';
    case 'return':
      if (isOpen) return 'The payer may still send the rest: wait until the window closes.';
      return isAnyPending(deposits) ? 'A deposit is not confirmed yet.' : undefined;
    case 'accept':
    case 'snooze':
      return undefined;
    default:
      return assertNever(act);
  }
}

/**
 * State that follows from the deposits; pure. What is received stays so, and what has expired is left
 * only by money that an operator credits.
 * @param isOpen whether the payer still has time
 */
export function statusOf(book: DepositBook, isOpen: boolean): CryptoPaymentStatus {
  const { status, amount_due, deposits, accepted } = book;
  if (status === 'received') return 'received';
  const received = amountReceived(deposits);
  if (status === 'expired' && received === 0n) return 'expired';
  if (deposits.some((deposit) => !deposit.late && isHeldByScreening(deposit))) return 'held';
  if (received >= unitsOf(amount_due) || (accepted && received > 0n)) return 'received';
  if (received > 0n) return 'underpaid';
  const isComing = deposits.some(({ status, late }) => status === 'pending' && !late);
  return isOpen || isComing ? 'awaiting_deposit' : 'expired';
}

/** Reason why the deposits need a person; null when they don't. */
export function attentionOf(
  { status, deposits }: Pick<DepositBook, 'status' | 'deposits'>,
  isOpen: boolean,
): CryptoPaymentAttention | null {
  if (deposits.some(({ undone }) => undone)) return 'deposit_undone';
  if (deposits.some(isHeldByScreening)) return 'deposit_held';
  if (deposits.some(isHeldLate)) return 'late_deposit';
  return status === 'underpaid' && !isOpen ? 'underpaid' : null;
}

function depositOf({ deposits }: DepositBook, transaction_id: string): Deposit | undefined {
  return deposits.find((deposit) => deposit.transaction_id === transaction_id);
}

function changed({ deposits }: DepositBook, change: Deposit): DepositChange {
  const { transaction_id } = change;
  return {
    kind: 'changed',
    deposits: deposits.map((deposit) =>
      deposit.transaction_id === transaction_id ? change : deposit,
    ),
  };
}
