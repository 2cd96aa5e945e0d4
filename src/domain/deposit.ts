import { unitsOf } from './crypto';

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

function isDeep({ confirmations, required_confirmations }: Deposit): boolean {
  return confirmations >= required_confirmations;
}

export function isCounted({ status }: Deposit): boolean {
  return status === 'confirmed';
}

export function isWaiting({ status }: Deposit): boolean {
  return status === 'held';
}

export function isHeldByScreening(deposit: Deposit): boolean {
  return isWaiting(deposit) && deposit.screening === 'failed';
}

export function isHeldLate(deposit: Deposit): boolean {
  return isWaiting(deposit) && deposit.screening !== 'failed';
}

/** Deposit with the status that its depth, its screening and its time call for. */
export function classified(deposit: Deposit): Deposit {
  if (!isDeep(deposit) || deposit.screening === null) return { ...deposit, status: 'pending' };
  const isHeld = deposit.screening === 'failed' || deposit.late;
  return { ...deposit, status: isHeld ? 'held' : 'confirmed' };
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
