import { workflowInfo } from '@temporalio/workflow';
import type { CryptoCallback, CryptoPaymentCallbackName } from '../../src/domain/crypto/callback';
import { amountReceived, isRequestedAsset } from '../../src/domain/crypto/deposit';
import {
  computeStatus,
  type DepositChange,
  type DepositSet,
  getDepositAttention,
} from '../../src/domain/crypto/deposit-set';
import {
  CRYPTO_PAYMENT_EVENTS,
  type CryptoPaymentAttention,
} from '../../src/domain/crypto/payment';
import { now } from '../shared/clock';
import type { AuditedAct } from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { StaleState } from '../shared/record';
import { screenDeposits } from './bank';
import { type CryptoPayment, record } from './state';

interface Cause {
  name?: CryptoPaymentCallbackName;
  callback?: CryptoCallback;
  audit?: AuditedAct;
  /** ISO 8601, ms. */
  closed_early_at?: string;
}

export function getDepositSet(payment: CryptoPayment): DepositSet {
  const { status, deposits, movements, accepted, facts } = payment;
  const { amount_due, sufficient = amount_due } = facts;
  return { status, deposits, movements, accepted, sufficient };
}

export function isOpen(payment: CryptoPayment): boolean {
  return now(payment) < payment.closesAt;
}

/** @throws StaleState after a sync from the database */
export async function applyChange(
  payment: CryptoPayment,
  change: DepositChange,
  { name, callback, audit, closed_early_at }: Cause,
): Promise<void> {
  if (change.kind === 'unapplied') {
    if (name !== undefined && callback !== undefined) {
      await record.recordUnapplied(payment, name, callback, change.reason);
    }
    if (change.attention !== undefined) await record.setAttention(payment, change.attention);
    return;
  }
  const { deposits, steps, accepted = payment.accepted } = change;
  const status = computeStatus({ ...getDepositSet(payment), deposits, accepted }, isOpen(payment));
  const isSame = status === payment.status && accepted === payment.accepted && steps.length === 0;
  if (isSame && JSON.stringify(deposits) === JSON.stringify(payment.deposits)) {
    const cause = { ...(name && { name }), ...(callback && { callback }) };
    return await applyChange(payment, { kind: 'unapplied', reason: 'it is known already' }, cause);
  }
  const isNew = !payment.reported.some((each) => each.status === status);
  const isReported =
    status !== payment.status && isNew && CRYPTO_PAYMENT_EVENTS[status] !== undefined;
  const reportedStates = isReported
    ? [...payment.reported, { status, transition: payment.transition + 1 }]
    : payment.reported;
  const amount_received = String(amountReceived(deposits));
  const write = record.transition(payment, [status], {
    change: {
      deposits,
      accepted,
      amount_received,
      reported: [...reportedStates],
      is_reported: isReported,
      steps,
      ...(closed_early_at === undefined ? {} : { closed_early_at }),
    },
    // Makes a repeat known without an event, callback or act.
    id: `${workflowInfo().runId}:${payment.transition + 1}`,
    ...(callback === undefined ? {} : { callback_id: callback.callback_id }),
    ...(audit === undefined ? {} : { audit }),
    // Scheduled, since a lost task would lose what follows the credit.
    scheduled: true,
  });
  await orReload(payment, write);
  payment.deposits = deposits;
  payment.accepted = accepted;
  payment.reported = reportedStates;
  await updateAttention(payment);
  screenDeposits(payment);
}

const NON_DEPOSIT_REASONS: readonly CryptoPaymentAttention[] = [
  'amount_differs',
  'too_many_deposits',
  'wrong_asset',
  'malformed_callback',
  'message_given_up',
  'books_refused',
];

export async function updateAttention(payment: CryptoPayment): Promise<void> {
  const attention = getDepositAttention(
    getDepositSet(payment),
    isOpen(payment),
    payment.acknowledged,
  );
  const current = payment.attention;
  const isOfDeposit = current === 'wrong_asset' && !payment.deposits.every(isRequestedAsset);
  const isOtherReason = current !== null && NON_DEPOSIT_REASONS.includes(current) && !isOfDeposit;
  if (attention === null && isOtherReason) return record.show(payment);
  await record.setAttention(payment, attention);
}

/** @throws StaleState after a sync of state and deposits from the database */
export async function orReload<T>(payment: CryptoPayment, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (error instanceof StaleState) await reload(payment);
    throw error;
  }
}

async function reload(payment: CryptoPayment): Promise<void> {
  const { id: resource_id, facts } = payment;
  const snapshot = await writeScheduled((activities) =>
    activities.loadCryptoPayment({ resource_id, request_id: facts.request_id }),
  );
  const { status, version, transition, attention } = snapshot;
  const { deposits, movements, accepted, reported } = snapshot;
  const state = { status, version, transition, attention };
  Object.assign(payment, { ...state, deposits, movements, accepted, reported });
  record.show(payment);
  await updateAttention(payment);
  screenDeposits(payment);
}
