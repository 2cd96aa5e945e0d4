import type { ClientSession } from 'mongodb';
import { MAIN_BALANCE } from '../src/domain/account/balance-account';
import { bookId } from '../src/ledger/entries';
import { buildChargeback, buildPaymentEntry, settledAmount } from '../src/ledger/resource-entries';
import type { PaymentDocument } from '../src/store/payments';
import { buildLockRequest, withDebitLock } from './shared/debit';
import { auditAct, buildAuditEntry } from './shared/operator-acts';
import type { Act } from './shared/record-inputs';
import type { RecordDeps } from './shared/record-table';

interface Booking {
  payment_id: string;
  /** ISO 8601, ms. */
  at: string;
  /** Value date of the bank. */
  value_date?: string;
}

/** Funds that came after a payment had ended. */
export interface LateFundsReceipt extends Booking {
  /** Minor units. */
  amount: number;
}

export interface LateFundsReversal extends Booking {
  /** Minor units; absent: all that came. */
  amount?: number;
}

export interface Chargeback extends Booking {
  /** Minor units; null: all that settled. */
  amount: number | null;
  /** Id made once, so that a repeat posts nothing. */
  id: string;
  audit: Act;
}

/** Late funds of a payment, in minor units. */
export interface LateFunds {
  amount: number;
  reversed: boolean;
}

export type ChargebackResult =
  | { outcome: 'posted'; held: number; owed: number }
  | { outcome: 'already_posted' }
  /** Exceeds what the payment has brought, in minor units. */
  | { outcome: 'amount_too_large'; settled: number };

/**
 * Journal entries for a payment's funds after it is final; no status changes.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export function createPaymentMoney(deps: RecordDeps) {
  const { payments } = deps.stores;
  return {
    /** Posts late funds to suspense, once for each payment. */
    recordLateMoney: (input: LateFundsReceipt): Promise<LateFunds> =>
      runBooking(deps, input, (payment, session) =>
        receiveLateFunds(deps, payment, input, session),
      ),
    /** Posts late funds out of suspense, once, unless the bank reports a different amount. */
    recordLateReversed: (input: LateFundsReversal): Promise<LateFunds> =>
      runBooking(deps, input, (payment, session) =>
        reverseLateFunds(deps, payment, input, session),
      ),
    recordDispute: async ({ payment_id, at }: Booking): Promise<void> => {
      await payments.dispute(payment_id, at);
    },
    /** Posts a chargeback; the merchant owes what the balance lacks. */
    clawBack: (input: Chargeback): Promise<ChargebackResult> => postChargeback(deps, input),
  };
}

/** Commits also a transaction that changes nothing: only then a majority has what it read. */
async function runBooking(
  deps: RecordDeps,
  { payment_id, at }: Booking,
  work: (payment: PaymentDocument, session: ClientSession) => Promise<unknown>,
): Promise<LateFunds> {
  const { payments } = deps.stores;
  const storedPayment = await read(deps, payment_id);
  const write = async (session: ClientSession) => {
    const payment = await payments.get(payment_id, session);
    if (payment !== null) await work(payment, session);
  };
  await withDebitLock(deps, buildLockRequest(bookId(storedPayment), at), write);
  const { late } = await read(deps, payment_id);
  return { amount: late?.amount ?? 0, reversed: Boolean(late?.reversed_at) };
}

async function read({ stores }: RecordDeps, payment_id: string): Promise<PaymentDocument> {
  const payment = await stores.payments.get(payment_id);
  if (payment === null) throw new Error(`The record of ${payment_id} is not there.`);
  return payment;
}

async function receiveLateFunds(
  { stores }: RecordDeps,
  payment: PaymentDocument,
  { amount, at, value_date }: LateFundsReceipt,
  session: ClientSession,
): Promise<boolean> {
  const late = { amount, received_at: at, reversed_at: null };
  if (!(await stores.payments.receiveLate(payment._id, late, session))) return false;
  const entry = buildPaymentEntry('payment_late_received', payment, amount, { at, value_date });
  await stores.ledger.post(entry, session);
  return true;
}

/** Posts the receipt, too, if the bank has not reported it. */
async function reverseLateFunds(
  deps: RecordDeps,
  payment: PaymentDocument,
  input: LateFundsReversal,
  session: ClientSession,
): Promise<boolean> {
  const amount = payment.late?.amount ?? input.amount ?? payment.amount;
  if (input.amount !== undefined && input.amount !== amount) return false;
  if (!payment.late) await receiveLateFunds(deps, payment, { ...input, amount }, session);
  const { ledger, payments } = deps.stores;
  if (!(await payments.reverseLate(payment._id, input.at, session))) return false;
  await ledger.post(buildPaymentEntry('payment_late_reversed', payment, amount, input), session);
  return true;
}

async function postChargeback(deps: RecordDeps, input: Chargeback): Promise<ChargebackResult> {
  const { payment_id, at, value_date, id, audit } = input;
  const { ledger, payments } = deps.stores;
  const payment = await read(deps, payment_id);
  const { account_id, livemode } = payment;
  const settledTotal = settledAmount(payment);
  const amount = input.amount ?? settledTotal;
  if (amount > settledTotal) return { outcome: 'amount_too_large', settled: settledTotal };
  const write = async (session: ClientSession) => {
    const emptyEntry = buildChargeback(payment, { held: 0, owed: amount }, { at });
    const balance = await ledger.balance(emptyEntry, MAIN_BALANCE, session);
    const available = balance?.available ?? 0;
    const heldAmount = available >= amount ? amount : Number(available);
    const owedAmount = amount - heldAmount;
    const actChange = { act: audit, id, at, before: 'settled', after: 'clawed back' };
    const act = buildAuditEntry(actChange);
    const parts = { held: heldAmount, owed: owedAmount };
    // Committed, so that the next read sees the same.
    if (!(await payments.recordChargeback(payment_id, { ...parts, at }, act, session))) return null;
    const subject = { resource: 'payment', resource_id: payment_id, account_id, livemode } as const;
    await auditAct(deps.stores, subject, actChange, session);
    await ledger.post(buildChargeback(payment, parts, { at, value_date }), session);
    return parts;
  };
  const result = await withDebitLock(deps, buildLockRequest(bookId(payment), at), write);
  if (result !== null) return { outcome: 'posted', ...result };
  const { clawed_back, audit: acts } = await read(deps, payment_id);
  const isRepeat = acts.some((act) => act.id === id);
  if (!isRepeat || !clawed_back) return { outcome: 'already_posted' };
  return { outcome: 'posted', held: clawed_back.held, owed: clawed_back.owed };
}
