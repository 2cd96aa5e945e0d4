import { unapplied } from '../lifecycle';
import { parseUnits } from './assets';
import { amountReceived, buildDepositKey, type Deposit, isConfirmed } from './deposit';
import { findDepositMovement, findDepositReason, isGone, judge } from './deposit-money';
import {
  DEPOSITS_MAX,
  type DepositChange,
  type DepositSet,
  listSame,
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
  const same = listSame(depositSet, report);
  const existing = same.at(-1);
  if (existing === undefined) return addDeposit(depositSet, report, terms);
  if (isGone(depositSet.movements, existing)) return addAgain(depositSet, same, report);
  const { amount, confirmations, mined_at } = report;
  if (existing.status === 'pending') {
    const known = { ...existing, amount, confirmations, ...(mined_at && { mined_at }) };
    const screening = existing.screening ?? report.screening;
    const late = same.length > 1 || isLate(known, terms);
    const { deposit, steps } = judge({ ...known, late, screening });
    return replaceDeposit(depositSet, deposit, steps);
  }
  if (existing.amount !== amount) {
    return unapplied('the deposit was reported with a different amount before', 'amount_differs');
  }
  if (findDepositReason(depositSet.movements, existing) === 'deposit_undone') {
    const again = { ...existing, confirmations };
    // The chain may remove it again, and a second node may not have it.
    if (!isConfirmed(again) || report.screening === 'failed') {
      return replaceDeposit(depositSet, again);
    }
    const isBack = { step: 'noted', deposit: existing.key, reason: null } as const;
    return replaceDeposit(depositSet, again, [isBack]);
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
  const { sufficient, deposits } = depositSet;
  const units = parseUnits(report.amount);
  const missing = parseUnits(sufficient) - amountReceived(deposits);
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
  const state = { key: buildDepositKey(report), status: 'pending' } as const;
  const late = isLate(report, terms);
  const { deposit, steps } = judge({ ...report, ...state, late, required_confirmations });
  return { kind: 'changed', deposits: [...deposits, deposit], steps };
}

/** Adds what the chain has again: it is in suspense until an operator decides about it. */
function addAgain(
  { deposits, movements }: DepositSet,
  same: readonly Deposit[],
  { amount, confirmations, seen_at, mined_at }: Omit<DepositReport, 'screening'>,
): DepositChange {
  const last = same.at(-1);
  if (last === undefined || deposits.length >= DEPOSITS_MAX) {
    return unapplied('the payment has too many deposits', 'too_many_deposits');
  }
  const { transaction_id, required_confirmations, screening, asset } = last;
  const key = buildDepositKey(last, same.length + 1);
  const facts = { key, transaction_id, amount, confirmations, required_confirmations, seen_at };
  const known = { ...(mined_at && { mined_at }), ...(asset && { asset }) };
  const added = { ...facts, ...known, late: true, screening };
  const { resolutions = [] } = findDepositMovement(movements, last) ?? {};
  // Nothing of it is the merchant's: it is of another asset, or was credited and made our loss.
  if (asset !== undefined || resolutions.some(({ as }) => as === 'loss')) {
    const reason = asset === undefined ? 'deposit_to_return' : 'wrong_asset';
    return hold(deposits, { ...added, status: 'rejected' }, reason);
  }
  const { deposit, steps } = judge({ ...added, status: 'pending' });
  return { kind: 'changed', deposits: [...deposits, deposit], steps };
}

function hold(
  deposits: readonly Deposit[],
  deposit: Deposit,
  reason: 'deposit_to_return' | 'wrong_asset',
): DepositChange {
  return {
    kind: 'changed',
    deposits: [...deposits, deposit],
    steps: [{ step: 'held', deposit: deposit.key, reason }],
  };
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
  const { deposits, movements } = depositSet;
  const added = { ...report, asset, key: buildDepositKey({ ...report, asset }) };
  const same = listSame(depositSet, added);
  const existing = same.at(-1);
  if (existing !== undefined && isGone(movements, existing)) {
    return addAgain(depositSet, same, report);
  }
  if (existing !== undefined) return unapplied('it is known already');
  if (deposits.length >= DEPOSITS_MAX) return unapplied(reason, 'too_many_deposits');
  const state = { status: 'rejected', late: true, screening: null } as const;
  return hold(deposits, { ...added, ...state, required_confirmations }, 'wrong_asset');
}

export function applyScreening(
  depositSet: DepositSet,
  transaction_id: string,
  screening: 'passed' | 'failed',
): DepositChange {
  const existing = listSame(depositSet, { transaction_id }).at(-1);
  if (existing?.status !== 'pending')
    return unapplied('the deposit is not waiting for a screening');
  const { deposit, steps } = judge({ ...existing, screening });
  return replaceDeposit(depositSet, deposit, steps);
}

/** Removes a reorged deposit; a counted one waits for an operator. */
export function applyReorg(
  depositSet: DepositSet,
  transaction_id: string,
  asset?: string,
): DepositChange {
  const existing = listSame(depositSet, { transaction_id, ...(asset && { asset }) }).at(-1);
  if (existing === undefined) return unapplied('no such deposit is known');
  const { key: deposit, status } = existing;
  if (status === 'pending') {
    const deposits = depositSet.deposits.filter((each) => each !== existing);
    return { kind: 'changed', deposits, steps: [] };
  }
  const movement = findDepositMovement(depositSet.movements, existing);
  if (status === 'confirmed') {
    if (movement?.reason === 'deposit_undone')
      return unapplied('the deposit was already reported as reorged');
    return replaceDeposit(depositSet, existing, [
      { step: 'noted', deposit, reason: 'deposit_undone' },
    ]);
  }
  if (findDepositReason(depositSet.movements, existing) === null)
    return unapplied('the deposit was rejected');
  if (movement?.is_debited) return unapplied('the deposit was debited', 'amount_differs');
  return replaceDeposit(depositSet, { ...existing, status: 'rejected' }, [
    { step: 'sent_back', deposit, as: 'never_happened' },
  ]);
}
