import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession } from 'mongodb';
import { assertLawful } from '../src/domain/assert';
import type { BankCallback, RefundCallbackName } from '../src/domain/callback';
import type { Failure } from '../src/domain/payment';
import { REFUND_MOVES, type RefundAttention, type RefundStatus } from '../src/domain/refund';
import { type RefusedFor, refundFault } from '../src/domain/refund-rules';
import type { RefundInput } from '../src/domain/refund-workflow';
import { InsufficientBalance } from '../src/ledger/postings';
import { inTransaction, isDuplicateKey } from '../src/mongo';
import type { AuditEntry } from '../src/store/attention';
import type { EventDocument } from '../src/store/events';
import type { PaymentDocument } from '../src/store/payments';
import type { RefundDocument } from '../src/store/refunds';
import { eventsOf, hasEndpoint } from './events';
import {
  type Act,
  auditOf,
  keepUnapplied,
  ledgerTurn,
  type RecordDeps,
  recordOnce,
  type Standing,
  tellPending,
} from './record';
import { changeOf, factsOf, happeningOf, newRefund, postingOf } from './refund-documents';

export type OpenRefund = RefundInput & {
  /** ISO 8601, ms. */
  created_at: string;
};

/** What the workflow goes on with; the amount is known now. */
export type RefundFacts = ReturnType<typeof factsOf>;

export type RefundOpening =
  | ({ outcome: 'accepted'; facts: RefundFacts } & Standing<RefundStatus>)
  /** Nothing is stored and nothing moved. */
  | ({ outcome: 'refused' } & RefusedFor);

export interface RecordRefundMove {
  refund_id: string;
  payment_id: string;
  account_id: string;
  livemode: boolean;
  from: Standing<RefundStatus>;
  to: 'settled' | 'failed';
  at: string;
  attention: RefundAttention | null;
  failure?: Failure;
  bank_reference?: string;
  audit?: Act;
  request_id: string;
}

interface UnappliedRefund {
  refund_id: string;
  connector: string;
  name: RefundCallbackName;
  callback: BankCallback;
  reason: string;
  request_id: string;
}

export type RefundActivities = ReturnType<typeof createRefundActivities>;

/** The writes of the refund's life. One activity is one idempotent step. */
export function createRefundActivities(deps: RecordDeps) {
  return {
    /** Reserves the amount, debits the balance and writes the refund, or says why not. */
    openRefund: (input: OpenRefund): Promise<RefundOpening> => openRefund(deps, input),
    /**
     * After a refusal: frees the key, so that no attempt still under way can be accepted later.
     * @returns the acceptance, should one have been faster; null when there is none
     */
    abandonRefund: (input: OpenRefund): Promise<RefundOpening | null> => abandonRefund(deps, input),
    /** Document, event, postings and audit entry in one transaction; then the delivery starts. */
    recordRefundMove: (input: RecordRefundMove): Promise<Standing<RefundStatus>> =>
      recordMove(deps, input),
    /** A callback that moved nothing, kept with its reason. */
    recordUnappliedRefund: ({ refund_id: resource_id, ...input }: UnappliedRefund): Promise<void> =>
      keepUnapplied(deps, { ...input, resource: 'refund', resource_id }),
    /** Why the refund needs a person, or that it no longer does. */
    recordRefundAttention: async (input: {
      refund_id: string;
      /** Of the state that the mark speaks of. */
      version: number;
      attention: RefundAttention | null;
      audit: (Act & { id: string; at: string }) | null;
      request_id: string;
    }): Promise<void> => {
      const { refund_id, version, attention, audit } = input;
      await deps.stores.refunds.setAttention(refund_id, version, attention, audit);
    },
    /** State and facts of a refund whose workflow starts again. */
    loadRefund: (input: { refund_id: string; request_id: string }) => loadRefund(deps, input),
  };
}

async function openRefund(deps: RecordDeps, input: OpenRefund): Promise<RefundOpening> {
  const existing = await deps.stores.refunds.get(input.refund_id);
  if (existing !== null) return accepted(existing, input.request_id);
  try {
    const work = (session: ClientSession) => reserve(deps, input, session);
    const opened = await inTransaction(deps.mongo, work, ledgerTurn(input));
    if (opened !== null) {
      const { refund_id, payment_id, request_id } = input;
      deps.log.info({ refund_id, payment_id, request_id, status: 'processing' }, 'refund opened');
      return accepted(opened, request_id);
    }
  } catch (error) {
    if (error instanceof InsufficientBalance) {
      const message = 'The balance does not hold the amount of the refund.';
      return { outcome: 'refused', code: 'insufficient_balance', message };
    }
    if (!isDuplicateKey(error)) throw error;
    // Another attempt was first, or (one in a million) the place in the list was taken: look again.
    return await openRefund(deps, input);
  }
  return await refused(deps, input);
}

/** As it was first answered, whatever has happened since. */
function accepted(refund: RefundDocument, request_id: string): RefundOpening {
  const facts = factsOf(refund, request_id);
  return { outcome: 'accepted', facts, status: 'processing', version: 1 };
}

/**
 * The payment's remainder, the refund and the balance in one transaction; null when the payment
 * does not allow it, or it is done already. The payment comes first: it is what concurrent refunds meet on.
 * @throws InsufficientBalance
 */
async function reserve(
  { stores }: RecordDeps,
  input: OpenRefund,
  session: ClientSession,
): Promise<RefundDocument | null> {
  const { refund_id, payment_id, amount, account_id, livemode, accepted_at } = input;
  const payment = await stores.payments.reserveRefund(payment_id, amount, session);
  if (payment === null || !isOwn(payment, account_id, livemode)) return await abandon(session);
  if (refundFault(refundable(payment), amount, new Date(accepted_at)))
    return await abandon(session);
  const request = await stores.idempotency.take(refund_id, session);
  // Emptied by another attempt, which was first.
  if (request === null || !('refund' in request)) return await abandon(session);
  const refund = newRefund(input, payment, request.refund);
  await stores.refunds.insert(refund, session);
  await stores.ledger.post(postingOf('refund_accepted', refund, input.created_at), session);
  return refund;
}

async function abandon(session: ClientSession): Promise<null> {
  await session.abortTransaction();
  return null;
}

function isOwn(payment: PaymentDocument, account_id: string, livemode: boolean): boolean {
  return payment.account_id === account_id && payment.livemode === livemode;
}

/** The payment may be older than its count of refunds. */
function refundable(payment: PaymentDocument) {
  return { ...payment, refunded: payment.refunded ?? 0 };
}

/** Why nothing was reserved; the refund itself when another attempt was first. */
async function refused({ stores }: RecordDeps, input: OpenRefund): Promise<RefundOpening> {
  const { refund_id, payment_id, account_id, livemode, amount, accepted_at } = input;
  const claim = await stores.idempotency.forResource(refund_id);
  const written = await stores.refunds.get(refund_id);
  if (written !== null) return accepted(written, input.request_id);
  if (!claim?.request) {
    throw ApplicationFailure.nonRetryable('No claim holds this refund.', 'claim_missing');
  }
  const payment = await stores.payments.get(payment_id);
  if (payment === null || !isOwn(payment, account_id, livemode)) {
    const message = 'There is no such payment.';
    return { outcome: 'refused', code: 'payment_not_found', message };
  }
  const fault = refundFault(refundable(payment), amount, new Date(accepted_at));
  // Given back by a failed refund between the two looks: try again.
  if (fault === undefined) throw new Error('The remainder changed while it was looked at.');
  return { outcome: 'refused', ...fault };
}

/** Claim and refund are written in one transaction, so once the claim is gone none can follow. */
async function abandonRefund(
  { stores }: RecordDeps,
  { refund_id, request_id }: OpenRefund,
): Promise<RefundOpening | null> {
  await stores.idempotency.release(refund_id);
  const written = await stores.refunds.get(refund_id);
  return written === null ? null : accepted(written, request_id);
}

async function recordMove(
  deps: RecordDeps,
  input: RecordRefundMove,
): Promise<Standing<RefundStatus>> {
  const { refund_id, account_id, livemode, from, to, at, request_id } = input;
  const version = from.version + 1;
  const events = eventsOf(
    { ...happeningOf(input), at, request_id, moves: [{ type: `refund.${to}`, version }] },
    await hasEndpoint(deps.stores, account_id, livemode),
  );
  const entry = { id: `${refund_id}:${version}`, when: at, before: from.status, after: to };
  const audit = auditOf(input.audit, entry);
  await recordOnce(deps, {
    ...{ resource_id: refund_id, account_id, livemode, events },
    commit: () => commitMove(deps, input, changeOf(input, version), audit, events),
  });
  deps.log.info({ refund_id, request_id, status: to }, 'refund moved');
  return { status: to, version };
}

/** One transaction; true when this call made the move. A taken place in a list throws: retried. */
async function commitMove(
  { mongo, stores }: RecordDeps,
  input: RecordRefundMove,
  change: Partial<RefundDocument>,
  audit: AuditEntry[],
  events: EventDocument[],
): Promise<boolean> {
  const { refund_id, from, to, at } = input;
  assertLawful(REFUND_MOVES, from.status, [to]);
  const work = async (session: ClientSession): Promise<boolean> => {
    const moved = await stores.refunds.update(refund_id, from.version, change, audit, session);
    if (moved === null) return false;
    await stores.events.insert(events, session);
    if (to === 'failed') await stores.payments.releaseRefund(moved, session);
    await stores.ledger.post(postingOf(`refund_${to}`, moved, at), session);
    return true;
  };
  return await inTransaction(mongo, work, ledgerTurn(input));
}

async function loadRefund(
  deps: RecordDeps,
  { refund_id, request_id }: { refund_id: string; request_id: string },
) {
  const refund = await deps.stores.refunds.get(refund_id);
  if (refund === null) throw ApplicationFailure.nonRetryable('No such refund.', 'refund_not_found');
  const { account_id, livemode, status, version, attention } = refund;
  await tellPending(deps, { resource_id: refund_id, account_id, livemode });
  return { facts: factsOf(refund, request_id), status, version, attention };
}
