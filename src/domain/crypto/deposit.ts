import { parseUnits } from './assets';

export const DEPOSIT_STATUSES = ['pending', 'confirmed', 'held', 'rejected'] as const;
type DepositStatus = (typeof DEPOSIT_STATUSES)[number];

export interface Deposit {
  transaction_id: string;
  /** Smallest units. */
  amount: string;
  confirmations: number;
  required_confirmations: number;
  status: DepositStatus;
  /** ISO 8601, ms. */
  seen_at: string;
  /** Counts only if an operator credits it. */
  late: boolean;
  /** Null until the source is screened. */
  screening: 'passed' | 'failed' | null;
  /** Whether a reorganization removed it after it had counted. */
  undone: boolean;
  /** Set if it had counted and goes back to the payer. */
  returned?: true;
}

function isConfirmed({ confirmations, required_confirmations }: Deposit): boolean {
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

export function classify(deposit: Deposit): Deposit {
  if (!isConfirmed(deposit) || deposit.screening === null) return { ...deposit, status: 'pending' };
  const isHeld = deposit.screening === 'failed' || deposit.late;
  return { ...deposit, status: isHeld ? 'held' : 'confirmed' };
}

export function amountReceived(deposits: readonly Deposit[]): bigint {
  return deposits.filter(isCounted).reduce((sum, { amount }) => sum + parseUnits(amount), 0n);
}

/** Finds deposits that a change makes count: they are credited in the same transaction. */
export function findCredited(before: readonly Deposit[], after: readonly Deposit[]): Deposit[] {
  return findNew(before, after, isCounted);
}

/** Finds deposits that a change sends back: they are debited in the same transaction. */
export function findReturned(before: readonly Deposit[], after: readonly Deposit[]): Deposit[] {
  return findNew(before, after, ({ returned }) => returned === true);
}

function findNew(
  before: readonly Deposit[],
  after: readonly Deposit[],
  matches: (deposit: Deposit) => boolean,
): Deposit[] {
  const earlierIds = new Set(before.filter(matches).map(({ transaction_id }) => transaction_id));
  return after.filter((deposit) => matches(deposit) && !earlierIds.has(deposit.transaction_id));
}

export function findUnscreened(deposits: readonly Deposit[]): Deposit[] {
  return deposits.filter(
    (deposit) => deposit.status === 'pending' && deposit.screening === null && isConfirmed(deposit),
  );
}

export function isAnyPending(deposits: readonly Deposit[]): boolean {
  return deposits.some(({ status }) => status === 'pending');
}
