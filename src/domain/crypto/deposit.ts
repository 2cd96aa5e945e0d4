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
  /** Null until it is screened. */
  screening: 'passed' | 'failed' | null;
  /** Reorged after it had counted. */
  reorged: boolean;
  /** ISO 8601, ms; absent: not reported. */
  mined_at?: string;
  /** Asset, if not the payment's. */
  asset?: string;
  /** Posted to suspense instead of credited. */
  held?: true;
  /** Counted, then debited again. */
  returned?: true;
  /** The debit was posted to suspense, until the payer has it. */
  withdrawn?: true;
  /** Number of times that the chain had it; absent: once, as far as it was decided about. */
  times?: number;
  /** Left suspense without a credit. */
  left?: { as: 'returned' | 'written_off' | 'reorged'; transaction_id?: string; address?: string };
}

export function isConfirmed({
  confirmations,
  required_confirmations,
}: Pick<Deposit, 'confirmations' | 'required_confirmations'>): boolean {
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
  if (!isHeld) return { ...deposit, status: 'confirmed' };
  return { ...deposit, status: 'held', held: true };
}

export function isInSuspense({ status, held, withdrawn, left }: Deposit): boolean {
  return left === undefined && status !== 'confirmed' && (held === true || withdrawn === true);
}

/** Credited, then reorged, without a decision of an operator. */
export function isReorged({ reorged, status, left }: Deposit): boolean {
  return reorged && status === 'confirmed' && left === undefined;
}

export function isRequestedAsset({ asset }: Deposit): boolean {
  return asset === undefined;
}

/** Gone from the chain, and decided about: what comes again is a new step. */
export function isGone(deposit: Deposit): boolean {
  return deposit.reorged && !isReorged(deposit);
}

/** Includes the asset, since one transaction may bring two, and how often the chain had it. */
export function depositKey({
  transaction_id,
  asset,
  times = 1,
}: Pick<Deposit, 'transaction_id' | 'asset' | 'times'>): string {
  const key = asset === undefined ? transaction_id : `${transaction_id}:${asset}`;
  return times === 1 ? key : `${key}#${times}`;
}

/** Each is posted once. @see docs/ledger.md */
export const DEPOSIT_STEPS = [
  'held',
  'credited',
  'returned',
  'withdrawn',
  'sent_back',
  'written_off',
] as const;
export type DepositStep = (typeof DEPOSIT_STEPS)[number];

const POSTED: Record<DepositStep, (deposit: Deposit) => boolean> = {
  held: ({ held }) => held === true,
  credited: ({ status, returned }) => status === 'confirmed' || returned === true,
  returned: ({ returned, withdrawn }) => returned === true && withdrawn !== true,
  withdrawn: ({ withdrawn }) => withdrawn === true,
  sent_back: ({ left }) => left?.as === 'returned' || left?.as === 'reorged',
  written_off: ({ left }) => left?.as === 'written_off',
};

export function listDepositSteps(deposit: Deposit): DepositStep[] {
  return DEPOSIT_STEPS.filter((step) => POSTED[step](deposit));
}

export interface DepositEntry {
  step: DepositStep;
  /** @see depositKey */
  deposit: string;
}

/** Post them in the transaction that changes the deposits. */
export function listDepositEntries(
  before: readonly Deposit[],
  after: readonly Deposit[],
): DepositEntry[] {
  const earlier = new Map(
    before.map((deposit) => [depositKey(deposit), listDepositSteps(deposit)]),
  );
  return after.flatMap((deposit) => {
    const key = depositKey(deposit);
    const posted = earlier.get(key) ?? [];
    return listDepositSteps(deposit)
      .filter((step) => !posted.includes(step))
      .map((step) => ({ step, deposit: key }));
  });
}

export function amountReceived(deposits: readonly Deposit[]): bigint {
  return deposits.filter(isCounted).reduce((sum, { amount }) => sum + parseUnits(amount), 0n);
}

export function findUnscreened(deposits: readonly Deposit[]): Deposit[] {
  return deposits.filter(
    (deposit) => deposit.status === 'pending' && deposit.screening === null && isConfirmed(deposit),
  );
}

export function isAnyPending(deposits: readonly Deposit[]): boolean {
  return deposits.some(({ status }) => status === 'pending');
}
