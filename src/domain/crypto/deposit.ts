import { parseUnits } from './assets';

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
  /** Whether it arrived after the window; it counts only if an operator credits it. */
  late: boolean;
  /** Null until the source is screened. */
  screening: 'passed' | 'failed' | null;
  /** Whether a reorganization removed it after it had counted. */
  undone: boolean;
  /** Present if it had counted and was debited again because it goes back to the payer. */
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

/** Sets the status by the deposit's confirmations, screening and time. */
export function classify(deposit: Deposit): Deposit {
  if (!isConfirmed(deposit) || deposit.screening === null) return { ...deposit, status: 'pending' };
  const isHeld = deposit.screening === 'failed' || deposit.late;
  return { ...deposit, status: isHeld ? 'held' : 'confirmed' };
}

/** Sums the counted deposits, in smallest units. */
export function amountReceived(deposits: readonly Deposit[]): bigint {
  return deposits.filter(isCounted).reduce((sum, { amount }) => sum + parseUnits(amount), 0n);
}

/** Finds deposits that a change makes count: they are credited in the same transaction. */
export function findCredited(before: readonly Deposit[], after: readonly Deposit[]): Deposit[] {
  const countedIds = new Set(
    before.flatMap(({ status, transaction_id }) =>
      status === 'confirmed' ? [transaction_id] : [],
    ),
  );
  return after.filter(
    ({ status, transaction_id }) => status === 'confirmed' && !countedIds.has(transaction_id),
  );
}

/** Finds deposits that a change sends back: they are debited in the same transaction. */
export function findReturned(before: readonly Deposit[], after: readonly Deposit[]): Deposit[] {
  const returnedIds = new Set(
    before.flatMap(({ returned, transaction_id }) => (returned ? [transaction_id] : [])),
  );
  return after.filter(
    ({ returned, transaction_id }) => returned && !returnedIds.has(transaction_id),
  );
}

/** Finds confirmed deposits that still need a screening. */
export function findUnscreened(deposits: readonly Deposit[]): Deposit[] {
  return deposits.filter(
    (deposit) => deposit.status === 'pending' && deposit.screening === null && isConfirmed(deposit),
  );
}

export function isAnyPending(deposits: readonly Deposit[]): boolean {
  return deposits.some(({ status }) => status === 'pending');
}
