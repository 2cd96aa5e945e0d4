import { ApplicationFailure } from '@temporalio/activity';
import type { SessionAnswer } from '../connectors/contract/activities';
import { senderCheck } from '../src/domain/callback-mac';
import { isPaymentMethodId, methodRules, settlesSoon } from '../src/domain/catalogue';
import type { PaymentRequest } from '../src/domain/creation';
import type { Failure } from '../src/domain/lifecycle';
import {
  PAYMENT_EVENTS,
  PAYMENT_MOVES,
  type PaymentAttention,
  type PaymentStatus,
} from '../src/domain/payment';
import type { PaymentInput, PaymentOpening } from '../src/domain/payment-workflow';
import { newTokenHash } from '../src/keys/pay-token';
import type { KeyRing } from '../src/keys/ring';
import { paymentPosting, settledAmount } from '../src/ledger/steps';
import { abandon, inTransaction } from '../src/mongo';
import type { Stores } from '../src/store';
import type { PaymentDocument } from '../src/store/payments';
import { startDeliveries } from '../src/temporal/deliveries';
import { eventsOf, positionAt, subscriptionOf, tieBase } from './events';
import { createPaymentMoney } from './payment-money';
import { createRecord, openedOnce } from './record';
import type { OpenedStanding, RecordMove, Standing } from './record-inputs';
import { eventsOfMoves, startPendingDeliveries } from './record-move';
import { type RecordDeps, type RecordTable, standingOf } from './record-table';

export interface PaymentActivityDeps extends RecordDeps {
  /** Keys that derive the tokens of pages. */
  payTokens: KeyRing;
}

export type OpenPayment = Omit<PaymentInput, 'expires_in_seconds'> & {
  created_at: string;
  expires_at: string;
  /** Null while the bank is slow. */
  session: SessionAnswer | null;
};

/** Fields that a move of a payment changes beside its status. */
export interface PaymentChange {
  failure: Failure;
  bank_reference: string;
  session_url: string;
  /** Minor units that came, where an operator books other than was asked. */
  settled_amount: number;
}

export type RecordPaymentMove = RecordMove<PaymentStatus, PaymentAttention, PaymentChange>;

export interface PaymentStanding extends OpenedStanding<PaymentStatus> {
  /** Facts of the first answer, where they are kept. */
  opening?: PaymentOpening;
}

/** The writes of a payment's lifecycle. One activity is one idempotent step. */
export function createPaymentActivities(deps: PaymentActivityDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  return {
    /** Writes the payment from its claim, with the bank's first answer and its event. */
    openPayment: async (input: OpenPayment): Promise<PaymentStanding> => ({
      ...(await openedOnce((isAgain) => openPayment(deps, input, isAgain))),
      senders: senderCheck(input.livemode),
    }),
    recordPaymentMove: record.move,
    recordPaymentAttention: record.setAttention,
    loadPayment: record.load,
    ...createPaymentMoney(deps),
  };
}

/** A payment's record: it credits the merchant when it settles. */
function recordTable(
  stores: Stores,
): RecordTable<
  PaymentStatus,
  PaymentAttention,
  PaymentChange,
  PaymentDocument,
  ReturnType<typeof loaded>
> {
  return {
    resource: 'payment',
    store: stores.payments,
    moves: PAYMENT_MOVES,
    events: PAYMENT_EVENTS,
    eventData,
    changeOf,
    posted: ['settled'],
    post: async (payment, move, session) => {
      if (!move.to.includes('settled')) return;
      const posting = paymentPosting('payment_settled', payment, settledAmount(payment), move);
      await stores.ledger.post(posting, session);
    },
    loaded,
  };
}

async function openPayment(
  deps: PaymentActivityDeps,
  input: OpenPayment,
  isAgain: boolean,
): Promise<PaymentStanding> {
  const { stores } = deps;
  const { payment_id, account_id, livemode, created_at: at, request_id } = input;
  // Its claim may be open although it is written, in collections of different times.
  const existing = isAgain ? await stores.payments.get(payment_id) : null;
  if (existing !== null) return await reopened(deps, existing);
  const subscription = await subscriptionOf(stores, account_id, livemode);
  const { status, version } = openingOf(input.session);
  const moves = version > 1 ? eventsOfMoves(PAYMENT_EVENTS, [status], 1) : [];
  const subject = { resource: 'payment', resource_id: payment_id, account_id, livemode } as const;
  const data = eventData({ _id: payment_id });
  const events = eventsOf({ ...subject, data, at, request_id, moves }, subscription);
  const opening = { status, failure: failureOf(input.session), created_at: at };
  const payment = await inTransaction(deps.mongo, async (session) => {
    const request = await stores.idempotency.emptyClaim(payment_id, session, opening);
    // Emptied by another attempt, which was first; or released, after its workflow had ended.
    if (request === null || !('stored' in request)) return await abandon(session);
    const fresh = newPayment(deps.payTokens, input, request.stored);
    await stores.payments.insert(fresh, session);
    if (events.length > 0) await stores.events.insert(events, session);
    return fresh;
  });
  if (payment === null) return await openedBefore(deps, payment_id);
  await startDeliveries(deps, events);
  deps.log.info({ payment_id, request_id, status }, 'payment opened');
  return { status, version, opening };
}

/** Answers as the attempt that was first. @throws Error while its payment is not to be seen */
async function openedBefore(
  deps: PaymentActivityDeps,
  payment_id: string,
): Promise<PaymentStanding> {
  const { payments, idempotency } = deps.stores;
  const written = await payments.get(payment_id);
  if (written !== null) return await reopened(deps, written);
  const claim = await idempotency.forResource(payment_id);
  // Emptied, but no majority has the other attempt's payment yet: try again.
  if (claim !== null) throw new Error(`The payment ${payment_id} is not to be seen yet.`);
  throw ApplicationFailure.nonRetryable('No claim holds this payment.', 'claim_missing');
}

/**
 * Answers as the attempt that opened it did, by the record, since the bank may have told this one
 * something else; where its claim is gone, as the payment is now. Starts the deliveries that the
 * first attempt may not have.
 */
async function reopened(
  deps: PaymentActivityDeps,
  payment: PaymentDocument,
): Promise<PaymentStanding> {
  await startPendingDeliveries(deps, payment);
  const claim = await deps.stores.idempotency.forResource(payment._id);
  if (claim?.opening !== undefined) return firstStanding(claim.opening);
  const { status, version } = payment;
  return { status, version };
}

/** The version is that with which `newPayment` writes this state. */
function firstStanding(opening: PaymentOpening): PaymentStanding {
  const { status } = opening;
  return { status, version: status === 'created' ? 1 : 2, opening };
}

/** The document as it is first written. @see docs/api.md#create-a-payment */
function newPayment(
  payTokens: KeyRing,
  input: OpenPayment,
  request: PaymentRequest,
): PaymentDocument {
  const { session, payment_id, settlement_due_seconds, settles_soon, ...facts } = input;
  const opened = session?.outcome === 'opened' ? session : null;
  return {
    _id: payment_id,
    ...facts,
    ...request,
    ...openingOf(session),
    position: positionAt(input.created_at, 0, tieBase(1)),
    failure: failureOf(session),
    refunded: 0,
    authorized_at: null,
    settled_at: null,
    cancelled_at: null,
    updated_at: input.created_at,
    bank_reference: opened?.bank_reference ?? null,
    session_url: opened?.session_url ?? null,
    token_hash: newTokenHash(payTokens, { ...request, _id: payment_id }),
    browser_hash: null,
    opened_at: null,
    attention: null,
    audit: [],
  };
}

/** State and version that a payment is first written with, by the bank's first answer. */
function openingOf(session: SessionAnswer | null): Standing<PaymentStatus> {
  if (session === null) return { status: 'created', version: 1 };
  const status = session.outcome === 'opened' ? 'awaiting_customer' : 'failed';
  return { status, version: 2 };
}

/** The bank's reason, where it refuses to open a session. */
function failureOf(session: SessionAnswer | null): Failure | null {
  if (session?.outcome !== 'declined') return null;
  return { code: session.code, message: session.message };
}

/** The ids that a payment's events carry. */
function eventData({ _id }: Pick<PaymentDocument, '_id'>): Record<string, string> {
  return { payment_id: _id };
}

function changeOf(move: RecordPaymentMove): Partial<PaymentDocument> {
  const { at, to, change } = move;
  return {
    ...standingOf(move),
    ...(to.includes('authorized') ? { authorized_at: at } : {}),
    ...(to.includes('settled') ? { settled_at: at } : {}),
    ...(to.includes('cancelled') ? { cancelled_at: at } : {}),
    ...change,
  };
}

/** State and facts of a payment whose workflow starts again. */
function loaded(payment: PaymentDocument, request_id: string) {
  const { status, version, attention } = payment;
  const { return_url = null, expires_at, authorized_at } = payment;
  return {
    ...{ facts: factsOf(payment, request_id), status, version, attention },
    ...{ return_url, expires_at, authorized_at },
    late: Boolean(payment.late),
  };
}

/** The facts that a workflow needs, from its opening or when it starts again. */
function factsOf(payment: PaymentDocument, request_id: string) {
  const { _id, account_id, livemode, amount, currency, method, country, connector } = payment;
  return {
    payment_id: _id,
    ...{ account_id, livemode, amount, currency, method, country, connector },
    expires_at_ms: Date.parse(payment.expires_at),
    settlement_due_seconds: settlementDue(method),
    ...(isPaymentMethodId(method) && settlesSoon(method) ? { settles_soon: true as const } : {}),
    request_id,
  };
}

function settlementDue(method: string): number {
  return isPaymentMethodId(method) ? methodRules(method).settlement_due_seconds : 0;
}
