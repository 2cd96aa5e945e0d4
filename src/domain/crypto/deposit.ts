import { parseUnits } from './assets';

export const DEPOSIT_STATUSES = ['pending', 'confirmed', 'held', 'rejected'] as const;
type DepositStatus = (typeof DEPOSIT_STATUSES)[number];

/** Facts of a deposit on the chain. Its row of the register says who has its money. */
export interface Deposit {
  /** Names its movement and its entries. */
  key: string;
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
  /** ISO 8601, ms; absent: not reported. */
  mined_at?: string;
  /** Asset, if not the payment's. */
  asset?: string;
}

export function isConfirmed({
  confirmations,
  required_confirmations,
}: Pick<Deposit, 'confirmations' | 'required_confirmations'>): boolean {
  return confirmations >= required_confirmations;
}

export function isHeldByScreening({ status, screening }: Deposit): boolean {
  return status === 'held' && screening === 'failed';
}

export function isRequestedAsset({ asset }: Pick<Deposit, 'asset'>): boolean {
  return asset === undefined;
}

/**
 * Includes the asset, since one transaction may bring two, and how often the chain had it.
 * @param times 1 at first; more once what was gone, and decided about, comes again
 */
export function buildDepositKey(
  { transaction_id, asset }: Pick<Deposit, 'transaction_id' | 'asset'>,
  times = 1,
): string {
  const key = asset === undefined ? transaction_id : `${transaction_id}:${asset}`;
  return times === 1 ? key : `${key}#${times}`;
}

export function amountReceived(deposits: readonly Deposit[]): bigint {
  const counted = deposits.filter(({ status }) => status === 'confirmed');
  return counted.reduce((sum, { amount }) => sum + parseUnits(amount), 0n);
}

export function findUnscreened(deposits: readonly Deposit[]): Deposit[] {
  return deposits.filter(
    (deposit) => deposit.status === 'pending' && deposit.screening === null && isConfirmed(deposit),
  );
}

export function isAnyPending(deposits: readonly Deposit[]): boolean {
  return deposits.some(({ status }) => status === 'pending');
}
