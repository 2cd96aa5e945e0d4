import { patched } from '@temporalio/workflow';
import type { CryptoCallback, CryptoPaymentCallbackName } from '../../src/domain/crypto-callback';
import {
  CRYPTO_PAYMENT_EVENTS,
  type CryptoPaymentAttention,
} from '../../src/domain/crypto-payment';
import { amountReceived, creditedBy, returnedBy } from '../../src/domain/deposit';
import {
  attentionOf,
  type DepositBook,
  type DepositChange,
  statusOf,
} from '../../src/domain/deposit-book';
import type { AuditedAct } from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { RecordAhead } from '../shared/record';
import { screenDeposits } from './bank';
import { type CryptoPayment, record } from './life';

/** Cause of a change. */
interface Cause {
  name?: CryptoPaymentCallbackName;
  callback?: CryptoCallback;
  audit?: AuditedAct;
}

export function bookOf(payment: CryptoPayment): DepositBook {
  const { status, deposits, accepted, facts } = payment;
  return { status, deposits, accepted, amount_due: facts.amount_due };
}

/** Whether the payer still has time. */
export function isOpen({ facts }: CryptoPayment): boolean {
  return Date.now() < Date.parse(facts.expires_at);
}

/**
 * Brings deposits, state, credits and event about in one write, and then the mark.
 * @throws RecordAhead once the payment stands where the record does; nothing was moved
 */
export async function apply(
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
  const status = statusOf({ ...bookOf(payment), deposits, accepted }, isOpen(payment));
  const isSame = status === payment.status && accepted === payment.accepted;
  if (isSame && JSON.stringify(deposits) === JSON.stringify(payment.deposits)) {
    const cause = { ...(name && { name }), ...(callback && { callback }) };
    return await apply(payment, { kind: 'unapplied', reason: 'it is known already' }, cause);
  }
  const isNew = !payment.told.some((each) => each.status === status);
  const tells = status !== payment.status && isNew && CRYPTO_PAYMENT_EVENTS[status] !== undefined;
  const told = tells ? [...payment.told, { status, version: payment.version + 1 }] : payment.told;
  const credited = creditedBy(payment.deposits, deposits).map((each) => each.transaction_id);
  const returned = returnedBy(payment.deposits, deposits).map((each) => each.transaction_id);
  const amount_received = String(amountReceived(deposits));
  const write = record.move(payment, [status], {
    change: {
      deposits,
      accepted,
      amount_received,
      told: [...told],
      credited,
      tells,
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
  payment.told = told;
  await mark(payment);
  screenDeposits(payment);
}

/** Marks of what no deposit tells: they stay until an operator has looked. */
const BESIDE_DEPOSITS: readonly CryptoPaymentAttention[] = [
  'amount_differs',
  'too_many_deposits',
  'malformed_callback',
];

/** Brings the mark in line with the deposits. */
export async function mark(payment: CryptoPayment): Promise<void> {
  const attention = attentionOf(bookOf(payment), isOpen(payment));
  if (attention === null && isBesideDeposits(payment.attention)) return record.show(payment);
  await record.setAttention(payment, attention);
}

function isBesideDeposits(attention: CryptoPaymentAttention | null): boolean {
  const isBeside = attention !== null && BESIDE_DEPOSITS.includes(attention);
  return isBeside && patched('marks-beside-deposits');
}

/**
 * Waits for a write, and reads the deposits again where the record is ahead of it.
 * @throws RecordAhead once the payment stands where the record does, with its deposits
 */
export async function orReload(payment: CryptoPayment, write: Promise<void>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (error instanceof RecordAhead) await reload(payment);
    throw error;
  }
}

/** Takes the deposits over as the record has them. */
async function reload(payment: CryptoPayment): Promise<void> {
  const { id: resource_id, facts } = payment;
  const loaded = await writeScheduled((activities) =>
    activities.loadCryptoPayment({ resource_id, request_id: facts.request_id }),
  );
  const { status, version, attention, deposits, accepted, told } = loaded;
  Object.assign(payment, { status, version, attention, deposits, accepted, told });
  record.show(payment);
  screenDeposits(payment);
}
