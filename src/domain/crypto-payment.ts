import { assertNever } from './assert';
import { unitsOf } from './crypto';
import type { EventType } from './event';

/** States of a crypto payment. @see docs/api.md#states-of-a-crypto-payment */
export const CRYPTO_PAYMENT_STATUSES = [
  /** Waits for the payer; a deposit may have been seen that is not confirmed yet. */
  'awaiting_deposit',
  /** Confirmed deposits are less than is due; more may come until the window closes. */
  'underpaid',
  /** A deposit failed screening, and waits for an operator. */
  'held',
  /** Confirmed deposits reach what is due. Never left. */
  'received',
  /** The window closed without a deposit that counts. Left only when late money is credited. */
  'expired',
] as const;

export type CryptoPaymentStatus = (typeof CRYPTO_PAYMENT_STATUSES)[number];

/** Lawful moves; one to its own state says that deposits changed. */
export const CRYPTO_PAYMENT_MOVES = {
  awaiting_deposit: ['awaiting_deposit', 'underpaid', 'held', 'received', 'expired'],
  underpaid: ['underpaid', 'held', 'received', 'expired'],
  held: ['held', 'awaiting_deposit', 'underpaid', 'received', 'expired'],
  received: ['received'],
  expired: ['expired', 'underpaid', 'received'],
} as const satisfies Record<CryptoPaymentStatus, readonly CryptoPaymentStatus[]>;

/** Event of each state; it is told once, when the state is first reached. */
export const CRYPTO_PAYMENT_EVENTS = {
  awaiting_deposit: undefined,
  underpaid: 'crypto.payment.underpaid',
  held: 'crypto.payment.held',
  received: 'crypto.payment.received',
  expired: 'crypto.payment.expired',
} as const satisfies Record<CryptoPaymentStatus, EventType | undefined>;

/** States in which its workflow runs. */
export const CRYPTO_PAYMENT_IN_FLIGHT = [
  'awaiting_deposit',
  'underpaid',
  'held',
] as const satisfies readonly CryptoPaymentStatus[];

/** Acts that an operator may ask of a crypto payment. */
export const CRYPTO_PAYMENT_ACTS = [
  'release',
  'reject',
  'accept',
  'return',
  'credit_late',
  'snooze',
] as const;
export type CryptoPaymentAct = (typeof CRYPTO_PAYMENT_ACTS)[number];

/** Reasons why a crypto payment needs a person: the values of `ServiceAttention`. */
export type CryptoPaymentAttention =
  /** Screening failed: released or rejected by a person. */
  | 'deposit_held'
  /** A deposit came after the window had closed. */
  | 'late_deposit'
  /** The window closed with less than is due. */
  | 'underpaid'
  /** The chain took back a deposit that counts. */
  | 'deposit_undone'
  /** A deposit that was seen is still not confirmed long after the window. */
  | 'deposit_unconfirmed'
  /** A deposit that counts is now reported with another amount. */
  | 'amount_differs'
  | 'too_many_deposits'
  | 'malformed_callback';

export const DEPOSIT_STATUSES = ['pending', 'confirmed', 'held', 'rejected'] as const;
type DepositStatus = (typeof DEPOSIT_STATUSES)[number];

/** Transaction that pays to the address of a crypto payment. */
export interface Deposit {
  transaction_id: string;
  /** Smallest units. */
  amount: string;
  confirmations: number;
  required_confirmations: number;
  status: DepositStatus;
  /** ISO 8601, ms. */
  seen_at: string;
  /** Whether it came after the window; it counts only once an operator credits it. */
  late: boolean;
  /** Verdict on its source; null while it is not known. */
  screening: 'passed' | 'failed' | null;
  /** Whether the chain took it back after it had counted. */
  undone: boolean;
  /** Present once it had counted and was taken off the balance again, since it goes back. */
  returned?: true;
}

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
    const deposit = settled({ ...fresh, status: 'pending' });
    return { kind: 'changed', deposits: [...book.deposits, deposit] };
  }
  const { amount, confirmations } = report;
  if (known.status === 'pending') {
    const screening = known.screening ?? report.screening;
    return changed(book, settled({ ...known, amount, confirmations, screening }));
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
  return changed(book, settled({ ...known, screening }));
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
        isHeldByScreening(deposit) ? settled({ ...deposit, screening: 'passed' }) : deposit,
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

/** Smallest units of the deposits that count. */
export function amountReceived(deposits: readonly Deposit[]): bigint {
  return deposits.filter(isCounted).reduce((sum, { amount }) => sum + unitsOf(amount), 0n);
}

/** Deposits that begin to count by a change: these are credited with it. */
export function creditedBy(before: readonly Deposit[], after: readonly Deposit[]): Deposit[] {
  const counted = new Set(
    before.flatMap(({ status, transaction_id }) =>
      status === 'confirmed' ? [transaction_id] : [],
    ),
  );
  return after.filter(
    ({ status, transaction_id }) => status === 'confirmed' && !counted.has(transaction_id),
  );
}

/** Deposits that no longer count, since they go back to the payer: these are taken off with it. */
export function returnedBy(before: readonly Deposit[], after: readonly Deposit[]): Deposit[] {
  const gone = new Set(
    before.flatMap(({ returned, transaction_id }) => (returned ? [transaction_id] : [])),
  );
  return after.filter(({ returned, transaction_id }) => returned && !gone.has(transaction_id));
}

/** Deposits that are deep enough in the chain, and whose source has to be screened. */
export function unscreened(deposits: readonly Deposit[]): Deposit[] {
  return deposits.filter(
    (deposit) => deposit.status === 'pending' && deposit.screening === null && isDeep(deposit),
  );
}

/** Whether a deposit was seen and is neither taken in nor given up. */
export function isAnyPending(deposits: readonly Deposit[]): boolean {
  return deposits.some(({ status }) => status === 'pending');
}

function isDeep({ confirmations, required_confirmations }: Deposit): boolean {
  return confirmations >= required_confirmations;
}

function isCounted({ status }: Deposit): boolean {
  return status === 'confirmed';
}

function isWaiting({ status }: Deposit): boolean {
  return status === 'held';
}

function isHeldByScreening(deposit: Deposit): boolean {
  return isWaiting(deposit) && deposit.screening === 'failed';
}

function isHeldLate(deposit: Deposit): boolean {
  return isWaiting(deposit) && deposit.screening !== 'failed';
}

/** Deposit with the status that its depth, its screening and its time call for. */
function settled(deposit: Deposit): Deposit {
  if (!isDeep(deposit) || deposit.screening === null) return { ...deposit, status: 'pending' };
  const isHeld = deposit.screening === 'failed' || deposit.late;
  return { ...deposit, status: isHeld ? 'held' : 'confirmed' };
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

/** Id of the workflow that runs a crypto payment's lifecycle. */
export function cryptoPaymentWorkflowId(cryptoPaymentId: string): string {
  return `crypto-payment:${cryptoPaymentId}`;
}
