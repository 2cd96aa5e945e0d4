import type { ClientSession } from 'mongodb';
import { MAIN_BALANCE } from '../src/domain/balance-account';
import { bookId } from '../src/ledger/postings';
import { clawBackOf, paymentPosting, settledAmount } from '../src/ledger/steps';
import type { PaymentDocument } from '../src/store/payments';
import { debitTurn, inDebitTurn } from './debit';
import { auditAct, entryOf } from './operator-acts';
import type { Act } from './record-inputs';
import type { RecordDeps } from './record-table';

interface Booking {
  payment_id: string;
  /** ISO 8601, ms. */
  at: string;
  /** Day on which the bank books it, where it says so. */
  value_date?: string;
}

/** Money that came after a payment had ended. */
export interface LateMoneyCame extends Booking {
  /** Minor units. */
  amount: number;
}

export interface LateMoneyLeft extends Booking {
  /** Minor units that the bank has sent back; absent: all that came. */
  amount?: number;
}

/** An operator's booking of what the bank took back. */
export interface ClawBack extends Booking {
  /** Minor units; null: all that settled. */
  amount: number | null;
  /** Id made once, so that a repeat books nothing. */
  id: string;
  audit: Act;
}

/** Late money as it stands; minor units. */
export interface LateStanding {
  amount: number;
  reversed: boolean;
}

export type ClawedBackAnswer =
  | { outcome: 'booked'; held: number; owed: number }
  | { outcome: 'booked_before' }
  /** More than the payment has brought; minor units. */
  | { outcome: 'too_much'; settled: number };

/**
 * Bookings of a payment's money that goes wrong; none moves the payment, which is final.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export function createPaymentMoney(deps: RecordDeps) {
  const { payments } = deps.stores;
  return {
    /** Posts late money to suspense, once for each payment. */
    recordLateMoney: async (input: LateMoneyCame): Promise<LateStanding> => {
      const payment = await booked(deps, input, (found, session) =>
        receive(deps, found, input, session),
      );
      return standingOf(payment);
    },
    /** Posts late money out of suspense, once; not where the bank speaks of another amount. */
    recordLateReversed: async (input: LateMoneyLeft): Promise<LateStanding> => {
      const payment = await booked(deps, input, (found, session) =>
        sendBack(deps, found, input, session),
      );
      return standingOf(payment);
    },
    /** Takes note that the bank wants settled money back: the payment can't be refunded any more. */
    recordDispute: async ({ payment_id, at }: Booking): Promise<void> => {
      await payments.dispute(payment_id, at);
    },
    /** Posts a claw-back against the balance, and what it doesn't hold as owed by the merchant. */
    clawBack: (input: ClawBack): Promise<ClawedBackAnswer> => clawBack(deps, input),
  };
}

/**
 * Runs a booking in one transaction with the payment as it is; answers with the payment after it.
 * It is committed also where nothing is to be booked: only then is what it saw on a majority, so that
 * the last read sees it, too.
 */
async function booked(
  deps: RecordDeps,
  { payment_id, at }: Booking,
  work: (payment: PaymentDocument, session: ClientSession) => Promise<unknown>,
): Promise<PaymentDocument> {
  const { payments } = deps.stores;
  const found = await read(deps, payment_id);
  const write = async (session: ClientSession) => {
    const payment = await payments.get(payment_id, session);
    if (payment !== null) await work(payment, session);
  };
  await inDebitTurn(deps, debitTurn(bookId(found), at), write);
  return await read(deps, payment_id);
}

async function read({ stores }: RecordDeps, payment_id: string): Promise<PaymentDocument> {
  const payment = await stores.payments.get(payment_id);
  if (payment === null) throw new Error(`The record of ${payment_id} is not there.`);
  return payment;
}

async function receive(
  { stores }: RecordDeps,
  payment: PaymentDocument,
  { amount, at, value_date }: LateMoneyCame,
  session: ClientSession,
): Promise<boolean> {
  const late = { amount, received_at: at, reversed_at: null };
  if (!(await stores.payments.receiveLate(payment._id, late, session))) return false;
  const posting = paymentPosting('payment_late_received', payment, amount, { at, value_date });
  await stores.ledger.post(posting, session);
  return true;
}

/** A bank that has sent money back had it: its word about the receipt may still be on the way. */
async function sendBack(
  deps: RecordDeps,
  payment: PaymentDocument,
  input: LateMoneyLeft,
  session: ClientSession,
): Promise<boolean> {
  const amount = payment.late?.amount ?? input.amount ?? payment.amount;
  if (input.amount !== undefined && input.amount !== amount) return false;
  if (!payment.late) await receive(deps, payment, { ...input, amount }, session);
  const { ledger, payments } = deps.stores;
  if (!(await payments.reverseLate(payment._id, input.at, session))) return false;
  await ledger.post(paymentPosting('payment_late_reversed', payment, amount, input), session);
  return true;
}

function standingOf({ late }: PaymentDocument): LateStanding {
  return { amount: late?.amount ?? 0, reversed: Boolean(late?.reversed_at) };
}

function subjectOf({ _id: resource_id, account_id, livemode }: PaymentDocument) {
  return { resource: 'payment', resource_id, account_id, livemode } as const;
}

async function clawBack(deps: RecordDeps, input: ClawBack): Promise<ClawedBackAnswer> {
  const { payment_id, at, value_date, id, audit } = input;
  const { ledger, payments } = deps.stores;
  const payment = await read(deps, payment_id);
  const settled = settledAmount(payment);
  const amount = input.amount ?? settled;
  if (amount > settled) return { outcome: 'too_much', settled };
  const write = async (session: ClientSession) => {
    const nothing = clawBackOf(payment, { held: 0, owed: amount }, { at });
    const balance = await ledger.balance(nothing, MAIN_BALANCE, session);
    const available = balance?.available ?? 0;
    const held = available >= amount ? amount : Number(available);
    const owed = amount - held;
    const made = { act: audit, id, at, before: 'settled', after: 'clawed back' };
    const act = entryOf(made);
    // Committed, too: the read that follows must see what this has seen.
    if (!(await payments.clawBack(payment_id, { held, owed, at }, act, session))) return null;
    await auditAct(deps.stores, subjectOf(payment), made, session);
    await ledger.post(clawBackOf(payment, { held, owed }, { at, value_date }), session);
    return { held, owed };
  };
  const made = await inDebitTurn(deps, debitTurn(bookId(payment), at), write);
  if (made !== null) return { outcome: 'booked', ...made };
  const { clawed_back, audit: acts } = await read(deps, payment_id);
  const isRepeat = acts.some((act) => act.id === id);
  if (!isRepeat || !clawed_back) return { outcome: 'booked_before' };
  return { outcome: 'booked', held: clawed_back.held, owed: clawed_back.owed };
}
