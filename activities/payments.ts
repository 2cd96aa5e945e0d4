import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession } from 'mongodb';
import type { SessionAnswer } from '../connectors/contract/activities';
import { assertLawful } from '../src/domain/assert';
import type { BankCallback, PaymentCallbackName } from '../src/domain/callback';
import {
  type Failure,
  PAYMENT_MOVES,
  type PaymentAttention,
  type PaymentStatus,
} from '../src/domain/payment';
import type { PaymentInput } from '../src/domain/payment-workflow';
import { inTransaction, isDuplicateKey } from '../src/mongo';
import type { AuditEntry } from '../src/store/attention';
import type { EventDocument } from '../src/store/events';
import type { PaymentDocument } from '../src/store/payments';
import { eventsOf, hasEndpoint, startDeliveries } from './events';
import {
  changeOf,
  factsOf,
  happeningOf,
  movesTo,
  newPayment,
  openingOf,
  settlementOf,
} from './payment-documents';
import {
  auditOf,
  keepUnapplied,
  ledgerTurn,
  type RecordDeps,
  recordOnce,
  type Standing,
  tellPending,
} from './record';

export interface PaymentActivityDeps extends RecordDeps {
  /** Under which page tokens are derived. */
  payTokenKey: Buffer;
}

export type OpenPayment = Omit<PaymentInput, 'return_url' | 'expires_in_seconds'> & {
  created_at: string;
  expires_at: string;
  /** Null while the bank is slow. */
  session: SessionAnswer | null;
};

export interface RecordMove {
  payment_id: string;
  account_id: string;
  livemode: boolean;
  from: { status: PaymentStatus; version: number };
  /** The states passed through, in order; none is skipped in the record. */
  to: PaymentStatus[];
  at: string;
  attention: PaymentAttention | null;
  failure?: Failure;
  bank_reference?: string;
  session_url?: string;
  audit?: { who: string; what: string; why: string };
  request_id: string;
}

export type PaymentStanding = Standing<PaymentStatus>;

interface UnappliedPayment {
  payment_id: string;
  connector: string;
  name: PaymentCallbackName;
  callback: BankCallback;
  reason: string;
  request_id: string;
}

export type PaymentActivities = ReturnType<typeof createPaymentActivities>;

/** The writes of the payment's life. One activity is one idempotent step. */
export function createPaymentActivities(deps: PaymentActivityDeps) {
  return {
    /** Writes the payment from its claim, with the bank's first answer and its event. */
    openPayment: (input: OpenPayment): Promise<PaymentStanding> => openPayment(deps, input),
    /** Document, events and audit entry in one transaction; then the deliveries are started. */
    recordMove: (input: RecordMove): Promise<PaymentStanding> => recordMove(deps, input),
    /** A callback that moved nothing, kept with its reason. */
    recordUnapplied: ({ payment_id: resource_id, ...input }: UnappliedPayment): Promise<void> =>
      keepUnapplied(deps, { ...input, resource: 'payment', resource_id }),
    /** Why the payment needs a person, or that it no longer does. */
    recordAttention: async (input: {
      payment_id: string;
      attention: PaymentAttention | null;
      audit: { id: string; who: string; what: string; why: string; at: string } | null;
      request_id: string;
    }): Promise<void> => {
      await deps.stores.payments.setAttention(input.payment_id, input.attention, input.audit);
    },
    /** State and facts of a payment whose workflow starts again. */
    loadPayment: (input: { payment_id: string; request_id: string }) => loadPayment(deps, input),
  };
}

async function openPayment(
  deps: PaymentActivityDeps,
  input: OpenPayment,
): Promise<PaymentStanding> {
  const { stores } = deps;
  const [existing, claim, listened] = await Promise.all([
    stores.payments.get(input.payment_id),
    stores.idempotency.forResource(input.payment_id),
    hasEndpoint(stores, input.account_id, input.livemode),
  ]);
  if (existing !== null) return await reopened(deps, existing, input);
  if (!claim?.request || !('stored' in claim.request)) {
    // Between the two reads another attempt may have written it and emptied the claim.
    const written = await stores.payments.get(input.payment_id);
    if (written !== null) return await reopened(deps, written, input);
    throw ApplicationFailure.nonRetryable('No claim holds this payment.', 'claim_missing');
  }
  const payment = newPayment(deps.payTokenKey, input, claim.request.stored);
  const { created_at: at, request_id } = input;
  const moves = payment.version > 1 ? movesTo([payment.status], 1) : [];
  const events = eventsOf({ ...happeningOf(payment), at, request_id, moves }, listened);
  try {
    await inTransaction(deps.mongo, async (session) => {
      await deps.stores.payments.insert(payment, session);
      if (events.length > 0) await deps.stores.events.insert(events, session);
    });
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    // Another attempt was first, or (one in a million) the place in the list was taken: look again.
    return await openPayment(deps, input);
  }
  const { _id: payment_id, status, version } = payment;
  await Promise.all([startDeliveries(deps, events), stores.idempotency.written(payment_id)]);
  deps.log.info({ payment_id, request_id, status }, 'payment opened');
  return { status, version };
}

/** Opened by an earlier attempt. Answers as that one did, whatever has happened since. */
async function reopened(
  deps: PaymentActivityDeps,
  payment: PaymentDocument,
  { session }: OpenPayment,
): Promise<PaymentStanding> {
  await followUp(deps, payment);
  return openingOf(session);
}

/** The write was done by an earlier attempt; what follows it may not have been. */
async function followUp(deps: PaymentActivityDeps, payment: PaymentDocument): Promise<void> {
  const { _id: resource_id, account_id, livemode } = payment;
  await Promise.all([
    tellPending(deps, { resource_id, account_id, livemode }),
    deps.stores.idempotency.written(resource_id),
  ]);
}

async function recordMove(deps: PaymentActivityDeps, input: RecordMove): Promise<PaymentStanding> {
  const { payment_id, account_id, livemode, from, to, at, request_id } = input;
  const last = to.at(-1);
  if (last === undefined) return from;
  const version = from.version + to.length;
  const happening = happeningOf({ ...input, _id: payment_id });
  const events = eventsOf(
    { ...happening, at, request_id, moves: movesTo(to, from.version) },
    await hasEndpoint(deps.stores, account_id, livemode),
  );
  const change = changeOf(input, last, version);
  const audit = auditOf(input.audit, {
    id: `${payment_id}:${version}`,
    when: at,
    before: from.status,
    after: last,
  });
  await recordOnce(deps, {
    ...{ resource_id: payment_id, account_id, livemode, events },
    commit: () => commitMove(deps, input, change, audit, events),
  });
  deps.log.info({ payment_id, request_id, status: last }, 'payment moved');
  return { status: last, version };
}

/** One transaction; true when this call made the move. A taken place in a list throws: retried. */
async function commitMove(
  { mongo, stores }: PaymentActivityDeps,
  input: RecordMove,
  change: Partial<PaymentDocument>,
  audit: AuditEntry[],
  events: EventDocument[],
): Promise<boolean> {
  const { payment_id, from, to, at } = input;
  assertLawful(PAYMENT_MOVES, from.status, to);
  const work = async (session: ClientSession): Promise<boolean> => {
    const moved = await stores.payments.update(payment_id, from.version, change, audit, session);
    if (moved === null) return false;
    await stores.events.insert(events, session);
    if (to.includes('settled')) await stores.ledger.post(settlementOf(moved, at), session);
    return true;
  };
  return await inTransaction(mongo, work, to.includes('settled') ? ledgerTurn(input) : undefined);
}

async function loadPayment(
  deps: PaymentActivityDeps,
  { payment_id, request_id }: { payment_id: string; request_id: string },
) {
  const payment = await deps.stores.payments.get(payment_id);
  if (payment === null) {
    throw ApplicationFailure.nonRetryable('No such payment.', 'payment_not_found');
  }
  await followUp(deps, payment);
  const { status, version, attention } = payment;
  return { facts: factsOf(payment, request_id), status, version, attention };
}
