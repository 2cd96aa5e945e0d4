import type { CryptoCallback, CryptoPaymentCallbackName } from '../../src/domain/crypto/callback';
import { amountReceived, findCredited, findReturned } from '../../src/domain/crypto/deposit';
import {
  computeStatus,
  type DepositChange,
  type DepositSet,
  getDepositAttention,
} from '../../src/domain/crypto/deposit-book';
import {
  CRYPTO_PAYMENT_EVENTS,
  type CryptoPaymentAttention,
} from '../../src/domain/crypto/payment';
import type { AuditedAct } from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { StaleState } from '../shared/record';
import { screenDeposits } from './bank';
import { type CryptoPayment, record } from './state';

/** Cause of a change. */
interface Cause {
  name?: CryptoPaymentCallbackName;
  callback?: CryptoCallback;
  audit?: AuditedAct;
}

export function getDepositBook(payment: CryptoPayment): DepositSet {
  const { status, deposits, accepted, facts } = payment;
  return { status, deposits, accepted, amount_due: facts.amount_due };
}

/** Whether the payer still has time. */
export function isOpen({ facts }: CryptoPayment): boolean {
  return Date.now() < Date.parse(facts.expires_at);
}

/**
 * Brings deposits, state, credits and event about in one write, and then the attention reason.
 * @throws StaleState once the payment is as it is stored; nothing was moved
 */
export async function applyChange(
  payment: CryptoPayment,
  change: DepositChange,
  { name, callback, audit }: Cause,
): Promise<void> {
  if (change.kind === 'unapplied') {
    if (name !== undefined && callback !== undefined) {
      await record.recordUnapplied(payment, name, callback, change.reason);
    }
    if (change.attention !== undefined) await record.setAttention(payment, change.attention);
    return;
  }
  const { deposits, accepted = payment.accepted } = change;
  const status = computeStatus({ ...getDepositBook(payment), deposits, accepted }, isOpen(payment));
  const isSame = status === payment.status && accepted === payment.accepted;
  if (isSame && JSON.stringify(deposits) === JSON.stringify(payment.deposits)) {
    const cause = { ...(name && { name }), ...(callback && { callback }) };
    return await applyChange(payment, { kind: 'unapplied', reason: 'it is known already' }, cause);
  }
  const isNew = !payment.reported.some((each) => each.status === status);
  const isReported =
    status !== payment.status && isNew && CRYPTO_PAYMENT_EVENTS[status] !== undefined;
  const reportedStates = isReported
    ? [...payment.reported, { status, version: payment.version + 1 }]
    : payment.reported;
  const credited = findCredited(payment.deposits, deposits).map((each) => each.transaction_id);
  const returned = findReturned(payment.deposits, deposits).map((each) => each.transaction_id);
  const amount_received = String(amountReceived(deposits));
  const write = record.transition(payment, [status], {
    change: {
      deposits,
      accepted,
      amount_received,
      reported: [...reportedStates],
      credited,
      is_reported: isReported,
      ...(returned.length > 0 ? { returned } : {}),
    },
    ...(callback === undefined ? {} : { callback_id: callback.callback_id }),
    ...(audit === undefined ? {} : { audit }),
    // A credit is never made from a task that may be lost with all that came after it.
    scheduled: true,
  });
  await orReload(payment, write);
  payment.deposits = deposits;
  payment.accepted = accepted;
  payment.reported = reportedStates;
  await updateAttention(payment);
  screenDeposits(payment);
}

/** Attention reasons that no deposit sets: they stay until an operator acts. */
const NON_DEPOSIT_REASONS: readonly CryptoPaymentAttention[] = [
  'amount_differs',
  'too_many_deposits',
  'malformed_callback',
];

/** Brings the attention reason in line with the deposits. */
export async function updateAttention(payment: CryptoPayment): Promise<void> {
  const attention = getDepositAttention(getDepositBook(payment), isOpen(payment));
  const current = payment.attention;
  const isOtherReason = current !== null && NON_DEPOSIT_REASONS.includes(current);
  if (attention === null && isOtherReason) return record.show(payment);
  await record.setAttention(payment, attention);
}

/**
 * Waits for a write; where the state is stale, loads the deposits again.
 * @throws StaleState once the payment is as it is stored, with its deposits
 */
export async function orReload(payment: CryptoPayment, write: Promise<void>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (error instanceof StaleState) await reload(payment);
    throw error;
  }
}

/** Syncs the deposits from the database. */
async function reload(payment: CryptoPayment): Promise<void> {
  const { id: resource_id, facts } = payment;
  const snapshot = await writeScheduled((activities) =>
    activities.loadCryptoPayment({ resource_id, request_id: facts.request_id }),
  );
  const { status, version, attention, deposits, accepted, reported } = snapshot;
  Object.assign(payment, { status, version, attention, deposits, accepted, reported });
  record.show(payment);
  screenDeposits(payment);
}
