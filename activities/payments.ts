import type { SessionAnswer } from '../connectors/contract/activities';
import { abandon, inTransaction } from '../src/base/mongo';
import { getVerificationMode } from '../src/domain/banks/callback';
import { sumFees } from '../src/domain/banks/movement';
import type { PaymentRequest } from '../src/domain/creation';
import { omitUndefined } from '../src/domain/defined';
import type { Failure } from '../src/domain/failure';
import { isPaymentMethodId, methodRules, settlesSoon } from '../src/domain/payment/catalog';
import {
  PAYMENT_EVENTS,
  PAYMENT_TRANSITIONS,
  type PaymentInput,
  type PaymentOpening,
  type PaymentStatus,
} from '../src/domain/payment/payment';
import type { TransferInstructions } from '../src/domain/payment/transfer-instructions';
import { derivePayTokenHash } from '../src/encryption/pay-token';
import { operationId } from '../src/ledger/entries';
import { buildSettlement, settledAmount } from '../src/ledger/resource-entries';
import { applyMovements, listMovements, recordApplied } from '../src/movements/register';
import { startDeliveries } from '../src/service/events/deliveries';
import type { PaymentDocument } from '../src/store/payments';
import { createPaymentDisputes } from './payment-disputes';
import { buildEvents, insertEvents, positionAt, readSubscribers } from './shared/events';
import { findFeeBearer, openWithRetry, throwMissing } from './shared/opening';
import { createRecord } from './shared/record';
import { listTransitionEvents, startPendingDeliveries } from './shared/record-move';
import {
  buildCommonChange,
  type OpenedState,
  type RecordDeps,
  type RecordTable,
  type ResourceState,
  type Transition,
} from './shared/record-table';

export interface PaymentActivityDeps extends RecordDeps {
  payTokenKey: Buffer;
}

export type OpenPayment = Omit<PaymentInput, 'expires_in_seconds'> & {
  created_at: string;
  expires_at: string;
  /** Null while the bank is slow. */
  session: SessionAnswer | null;
};

export interface PaymentChange {
  failure: Failure;
  bank_reference: string;
  session_url: string;
  instructions: TransferInstructions;
  /** Minor units; an operator may post a different amount. */
  settled_amount: number;
  /** `YYYY-MM-DD`. */
  available_on: string;
}

export type PaymentTransition = Transition<PaymentDocument, PaymentChange>;

export interface OpenedPayment extends OpenedState<PaymentStatus> {
  opening?: PaymentOpening;
}

export function createPaymentActivities(deps: PaymentActivityDeps) {
  const { stores } = deps;
  const table: RecordTable<PaymentDocument, PaymentChange> = {
    resource: 'payment',
    store: stores.payments,
    transitions: PAYMENT_TRANSITIONS,
    events: PAYMENT_EVENTS,
    eventData,
    buildChange: (transition) => {
      const { at, to, change } = transition;
      return {
        ...buildCommonChange(transition),
        ...(to.includes('authorized') ? { authorized_at: at } : {}),
        ...(to.includes('settled') ? { settled_at: at } : {}),
        ...(to.includes('cancelled') ? { cancelled_at: at } : {}),
        ...change,
      };
    },
    posted: ['settled'],
    post: async (payment, transition, session) => {
      if (!transition.to.includes('settled')) return [];
      const taken = await applyMovements(stores, payment._id, transition.taken, session);
      const held = Number(taken.in);
      const amount = settledAmount(payment) - held;
      const entry = operationId({ kind: 'payment_settled', resource_id: payment._id });
      const moved = { kind: 'payment', direction: 'in', amount, entry } as const;
      const fee_bearer = await findFeeBearer(stores, payment, transition, session);
      const moving = { ...transition, fee_bearer };
      const movements = await recordApplied(stores, payment, moving, moved, session);
      const settled = held === 0 ? movements : await listMovements(stores, payment._id, session);
      const parts = { held, fee: sumFees(settled) };
      await stores.ledger.post(buildSettlement(payment, parts, transition), session);
      return movements;
    },
  };
  const record = createRecord(deps, table, async (payment, request_id) => {
    const { _id, account_id, livemode, amount, currency, method, country, connector } = payment;
    const { return_url = null, expires_at, authorized_at } = payment;
    const isMethod = isPaymentMethodId(method);
    const facts = {
      payment_id: _id,
      ...{ account_id, livemode, amount, currency, method, country, connector },
      expires_at_ms: Date.parse(expires_at),
      settlement_due_seconds: isMethod ? methodRules(method).settlement_due_seconds : 0,
      ...(isMethod && settlesSoon(method) ? { settles_soon: true as const } : {}),
      request_id,
    };
    const movements = await listMovements(stores, _id);
    return { facts, return_url, expires_at, authorized_at, movements };
  });
  return {
    openPayment: (input: OpenPayment): Promise<OpenedPayment> =>
      openWithRetry((isRetry) => openPayment(deps, input, isRetry)),
    recordPaymentMove: record.transition,
    recordPaymentAttention: record.setAttention,
    loadPayment: record.load,
    ...createPaymentDisputes(deps),
  };
}

async function openPayment(
  deps: PaymentActivityDeps,
  input: OpenPayment,
  isRetry: boolean,
): Promise<OpenedPayment> {
  const { stores } = deps;
  const { payment_id, account_id, livemode, created_at: at, request_id } = input;
  // After a restore, a stored payment may still have its request.
  const existing = isRetry ? await stores.payments.get(payment_id) : null;
  if (existing !== null) return await answerReopened(deps, existing);
  const subscribers = await readSubscribers(stores, account_id, livemode);
  const { status, transition } = getFirstState(input.session);
  const transitions = transition > 1 ? listTransitionEvents(PAYMENT_EVENTS, [status], 1) : [];
  const subject = { resource: 'payment', resource_id: payment_id, account_id, livemode } as const;
  const data = eventData({ _id: payment_id });
  const events = buildEvents({ ...subject, data, at, request_id, transitions }, subscribers);
  const opening = { status, failure: getFailure(input.session), created_at: at };
  const payment = await inTransaction(deps.mongo, async (session) => {
    const request = await stores.idempotency.clearRequest(payment_id, session, opening);
    // Another attempt was first, or the request was released.
    if (request === null || !('stored' in request)) return await abandon(session);
    const fresh = newPayment(deps.payTokenKey, input, request.stored);
    await stores.payments.insert(fresh, session);
    await insertEvents(stores, events, session);
    return fresh;
  });
  if (payment === null) {
    const storedPayment = await stores.payments.get(payment_id);
    if (storedPayment !== null) return await answerReopened(deps, storedPayment);
    return await throwMissing(stores, 'payment', payment_id);
  }
  await startDeliveries(deps, events);
  deps.log.info({ payment_id, request_id, status }, 'payment opened');
  return buildOpenedPayment(input, opening);
}

/** Answers with the stored opening, since the bank may answer attempts differently. */
async function answerReopened(
  deps: PaymentActivityDeps,
  payment: PaymentDocument,
): Promise<OpenedPayment> {
  await startPendingDeliveries(deps, payment);
  const record = await deps.stores.idempotency.forResource(payment._id);
  if (record?.opening !== undefined) return buildOpenedPayment(payment, record.opening);
  const { status, version, transition, livemode } = payment;
  return { status, version, transition, verification: getVerificationMode(livemode) };
}

function buildOpenedPayment(
  { livemode }: Pick<PaymentDocument, 'livemode'>,
  opening: PaymentOpening,
): OpenedPayment {
  const { status } = opening;
  const count = status === 'created' ? 1 : 2;
  const verification = getVerificationMode(livemode);
  return { status, version: count, transition: count, opening, verification };
}

/** @see docs/api.md#create-a-payment */
function newPayment(
  payTokenKey: Buffer,
  input: OpenPayment,
  request: PaymentRequest,
): PaymentDocument {
  const { session, payment_id, settlement_due_seconds, settles_soon, ...facts } = input;
  const openedSession = session?.outcome === 'opened' ? session : null;
  return {
    _id: payment_id,
    ...facts,
    ...request,
    ...getFirstState(session),
    position: positionAt(input.created_at),
    failure: getFailure(session),
    refunded: 0,
    authorized_at: null,
    settled_at: null,
    cancelled_at: null,
    updated_at: input.created_at,
    bank_reference: openedSession?.bank_reference ?? null,
    session_url: openedSession?.session_url ?? null,
    ...omitUndefined({ instructions: openedSession?.instructions }),
    token_hash: derivePayTokenHash(payTokenKey, payment_id),
    browser_hash: null,
    opened_at: null,
    attention: null,
    audit: [],
  };
}

function getFirstState(session: SessionAnswer | null): ResourceState<PaymentStatus> {
  if (session === null) return { status: 'created', version: 1, transition: 1 };
  const status = session.outcome === 'opened' ? 'awaiting_customer' : 'failed';
  return { status, version: 2, transition: 2 };
}

function getFailure(session: SessionAnswer | null): Failure | null {
  if (session?.outcome !== 'declined') return null;
  return { code: session.code, message: session.message };
}

function eventData({ _id }: Pick<PaymentDocument, '_id'>): Record<string, string> {
  return { payment_id: _id };
}
