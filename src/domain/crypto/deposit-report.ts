import { unapplied } from '../lifecycle';
import { parseUnits } from './assets';
import {
  amountReceived,
  classify,
  type Deposit,
  isConfirmed,
  isGone,
  isInSuspense,
} from './deposit';
import {
  DEPOSITS_MAX,
  type DepositChange,
  type DepositSet,
  findDeposit,
  replaceDeposit,
} from './deposit-set';

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
  /** Smallest units; a smaller deposit is dust unless it completes the payment. */
  least_deposit?: string | undefined;
}

/** Never changes the amount of a counted deposit. */
export function applyDeposit(
  depositSet: DepositSet,
  report: DepositReport,
  terms: DepositTerms,
): DepositChange {
  const existing = findDeposit(depositSet, report);
  if (existing === undefined) return addDeposit(depositSet, report, terms);
  if (isGone(existing)) return addAgain(depositSet, existing, report);
  const { amount, confirmations, mined_at } = report;
  if (existing.status === 'pending') {
    const known = { ...existing, amount, confirmations, ...(mined_at && { mined_at }) };
    const screening = existing.screening ?? report.screening;
    const late = existing.times !== undefined || isLate(known, terms);
    const deposit = classify({ ...known, late, screening });
    return replaceDeposit(depositSet, deposit);
  }
  if (existing.amount !== amount) {
    return unapplied('the deposit was reported with a different amount before', 'amount_differs');
  }
  if (existing.reorged) {
    return replaceDeposit(depositSet, { ...existing, reorged: false, confirmations });
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
  const { amount_due, deposits } = depositSet;
  const units = parseUnits(report.amount);
  const missing = parseUnits(amount_due) - amountReceived(deposits);
  const completes = missing > 0n && units >= missing;
  if (!completes && units < parseUnits(least_deposit)) {
    return unapplied('the deposit is dust: nothing of it is credited');
  }
  if (
    deposits.length >= DEPOSITS_MAX &&
    !(completes && isConfirmed({ ...report, required_confirmations }))
  ) {
    return unapplied('the payment has too many deposits', 'too_many_deposits');
  }
  const state = { status: 'pending', late: isLate(report, terms), reorged: false } as const;
  const deposit = classify({ ...report, ...state, required_confirmations });
  return { kind: 'changed', deposits: [...deposits, deposit] };
}

/** Adds what the chain has again: it is in suspense until an operator decides about it. */
function addAgain(
  { deposits }: DepositSet,
  { transaction_id, required_confirmations, screening, asset, times = 1, left }: Deposit,
  { amount, confirmations, seen_at, mined_at }: Omit<DepositReport, 'screening'>,
): DepositChange {
  if (deposits.length >= DEPOSITS_MAX) {
    return unapplied('the payment has too many deposits', 'too_many_deposits');
  }
  const facts = { transaction_id, amount, confirmations, required_confirmations, seen_at };
  const state = { status: 'pending', late: true, reorged: false, times: times + 1 } as const;
  const known = { ...(mined_at && { mined_at }), ...(asset && { asset }) };
  const deposit = classify({ ...facts, ...known, ...state, screening });
  // Nothing of it is the merchant's: it is of another asset, or was credited and made our loss.
  const isOurs = asset !== undefined || left?.as === 'written_off';
  const added: Deposit = isOurs ? { ...deposit, status: 'rejected', held: true } : deposit;
  return { kind: 'changed', deposits: [...deposits, added] };
}

function isLate(
  { seen_at, mined_at = seen_at }: Pick<DepositReport, 'seen_at' | 'mined_at'>,
  { expires_at }: DepositTerms,
): boolean {
  return (mined_at < seen_at ? mined_at : seen_at) > expires_at;
}

/** Adds what came in another asset than the payment's: it is in suspense until it leaves. */
export function applyWrongAsset(
  depositSet: DepositSet,
  { asset, ...report }: Omit<DepositReport, 'screening'> & { asset: string | undefined },
  { required_confirmations }: DepositTerms,
): DepositChange {
  const reason = 'another asset came to the address';
  if (asset === undefined) return unapplied(reason, 'wrong_asset');
  const { deposits } = depositSet;
  const added = { ...report, asset };
  const existing = findDeposit(depositSet, added);
  if (existing !== undefined && isGone(existing)) return addAgain(depositSet, existing, report);
  if (existing !== undefined) return unapplied('it is known already');
  if (deposits.length >= DEPOSITS_MAX) return unapplied(reason, 'too_many_deposits');
  const state = { status: 'rejected', late: true, reorged: false, screening: null } as const;
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
  return replaceDeposit(depositSet, classify({ ...existing, screening }));
}

/** Removes a reorged deposit; a counted one waits for an operator. */
export function applyReorg(
  depositSet: DepositSet,
  transaction_id: string,
  asset?: string,
): DepositChange {
  const existing = findDeposit(depositSet, { transaction_id, ...(asset && { asset }) });
  if (existing === undefined) return unapplied('no such deposit is known');
  if (existing.status === 'confirmed') {
    if (existing.reorged) return unapplied('the deposit was already reported as reorged');
    return replaceDeposit(depositSet, { ...existing, reorged: true });
  }
  if (isInSuspense(existing)) {
    if (existing.withdrawn) return unapplied('the deposit was debited', 'amount_differs');
    const left = { as: 'reorged' } as const;
    return replaceDeposit(depositSet, { ...existing, status: 'rejected', reorged: true, left });
  }
  if (existing.status === 'rejected') return unapplied('the deposit was rejected');
  const deposits = depositSet.deposits.filter((deposit) => deposit !== existing);
  return { kind: 'changed', deposits };
}
