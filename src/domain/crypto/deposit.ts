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
  /** ISO 8601, ms: when its block was mined, if the connector names it. */
  mined_at?: string;
  /** Asset that came in place of the payment's. */
  asset?: string;
  /** Set if it was posted to suspense instead of being credited. */
  held?: true;
  /** Set if it had counted, and the merchant was debited again. */
  returned?: true;
  /** Set if that debit was posted to suspense, until the payer has it. */
  withdrawn?: true;
  /** End of a deposit that is not credited: nothing of it is in suspense any more. */
  left?: { as: 'returned' | 'written_off' | 'undone'; transaction_id?: string; address?: string };
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

/** @param posts whether a held deposit is posted to suspense */
export function classify(deposit: Deposit, posts: boolean): Deposit {
  if (!isConfirmed(deposit) || deposit.screening === null) return { ...deposit, status: 'pending' };
  const isHeld = deposit.screening === 'failed' || deposit.late;
  if (!isHeld) return { ...deposit, status: 'confirmed' };
  return { ...deposit, status: 'held', ...(posts ? { held: true } : {}) };
}

export function isInSuspense({ status, held, withdrawn, left }: Deposit): boolean {
  return left === undefined && status !== 'confirmed' && (held === true || withdrawn === true);
}

/** Whether it was credited, the chain has removed it, and no operator has decided who bears it. */
export function isReorged({ undone, status, left }: Deposit): boolean {
  return undone && status === 'confirmed' && left === undefined;
}

/** Whether it is of the asset that the payment asks for. */
export function isRequestedAsset({ asset }: Deposit): boolean {
  return asset === undefined;
}

/** Names a deposit: one transaction may bring two assets. */
export function depositKey({
  transaction_id,
  asset,
}: Pick<Deposit, 'transaction_id' | 'asset'>): string {
  return asset === undefined ? transaction_id : `${transaction_id}:${asset}`;
}

/** Journal entries of a deposit, each posted once. @see docs/ledger.md */
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
  sent_back: ({ left }) => left?.as === 'returned' || left?.as === 'undone',
  written_off: ({ left }) => left?.as === 'written_off',
};

/** Lists the entries that the ledger has of a deposit. */
export function listDepositSteps(deposit: Deposit): DepositStep[] {
  return DEPOSIT_STEPS.filter((step) => POSTED[step](deposit));
}

export interface DepositEntry {
  step: DepositStep;
  /** @see depositKey */
  deposit: string;
}

/** Lists the entries that a change of the deposits posts, in the same transaction. */
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

/** Finds deposits that a change makes count: they are credited in the same transaction. */
export function findCredited(before: readonly Deposit[], after: readonly Deposit[]): Deposit[] {
  const earlier = new Set(before.filter(isCounted).map(depositKey));
  return after.filter((deposit) => isCounted(deposit) && !earlier.has(depositKey(deposit)));
}

export function findUnscreened(deposits: readonly Deposit[]): Deposit[] {
  return deposits.filter(
    (deposit) => deposit.status === 'pending' && deposit.screening === null && isConfirmed(deposit),
  );
}

export function isAnyPending(deposits: readonly Deposit[]): boolean {
  return deposits.some(({ status }) => status === 'pending');
}
