import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession } from 'mongodb';
import { senderCheck } from '../src/domain/callback-mac';
import { notFound } from '../src/domain/errors';
import type { Failure, RuleViolation } from '../src/domain/lifecycle';
import {
  REFUND_EVENTS,
  REFUND_MOVES,
  type RefundAttention,
  type RefundStatus,
} from '../src/domain/refund';
import { refundFault } from '../src/domain/refund-rules';
import { bookId, InsufficientBalance } from '../src/ledger/postings';
import { refundPosting, settledAmount } from '../src/ledger/steps';
import type { Stores } from '../src/store';
import type { RefundDocument } from '../src/store/refunds';
import { debitTurn, inDebitTurn } from './debit';
import { createRecord, openedOnce } from './record';
import type { OpenedStanding, RecordMove } from './record-inputs';
import { type RecordDeps, type RecordTable, standingOf } from './record-table';
import { isOwn, type OpenRefund, refundable, reserve } from './refund-reservation';

/** Facts for the workflow to go on with; the amount is known now. */
export type RefundFacts = ReturnType<typeof factsOf>;

export type RefundOpening =
  | ({
      outcome: 'accepted';
      facts: RefundFacts;
      /** Written by this very call, so that the record can't have moved on yet. */
      isFresh?: true;
    } & OpenedStanding<RefundStatus>)
  /** Nothing is stored and nothing moved. */
  | ({ outcome: 'refused' } & RuleViolation);

/** Fields that a move of a refund changes beside its status. */
export interface RefundChange {
  failure: Failure;
  bank_reference: string;
  /** Minor units that the bank sent, where an operator books less than was asked. */
  settled_amount: number;
}

type RecordRefundMove = RecordMove<RefundStatus, RefundAttention, RefundChange>;

/** The writes of a refund's lifecycle. One activity is one idempotent step. */
export function createRefundActivities(deps: RecordDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  return {
    /** Reserves the amount, debits the balance and writes the refund, or says why not. */
    openRefund: (input: OpenRefund): Promise<RefundOpening> =>
      openedOnce((isAgain) => openRefund(deps, input, isAgain)),
    /**
     * Frees the key after a refusal, so that no attempt still under way can be accepted later.
     * @returns the acceptance, should one have been faster; null when there is none
     */
    abandonRefund: (input: OpenRefund): Promise<RefundOpening | null> => abandonRefund(deps, input),
    recordRefundMove: record.move,
    recordRefundAttention: record.setAttention,
    readRefundStanding: record.standing,
    loadRefund: record.load,
  };
}

/** A refund's record: a failed one gives its amount back to the payment and to the balance. */
function recordTable(
  stores: Stores,
): RecordTable<
  RefundStatus,
  RefundAttention,
  RefundChange,
  RefundDocument,
  ReturnType<typeof loaded>
> {
  return {
    resource: 'refund',
    store: stores.refunds,
    moves: REFUND_MOVES,
    events: REFUND_EVENTS,
    eventData: ({ _id, payment_id }) => ({ refund_id: _id, payment_id }),
    changeOf,
    posted: ['settled', 'failed'],
    post: async (refund, move, session) => {
      const kind = move.to.includes('failed') ? 'refund_failed' : 'refund_settled';
      const sent = kind === 'refund_failed' ? 0 : settledAmount(refund);
      const { payment_id, amount } = refund;
      if (sent < amount) {
        await stores.payments.releaseRefund({ payment_id, amount: amount - sent }, session);
      }
      await stores.ledger.post(refundPosting(kind, refund, move), session);
    },
    loaded,
  };
}

async function openRefund(
  deps: RecordDeps,
  input: OpenRefund,
  isAgain: boolean,
): Promise<RefundOpening> {
  // Its claim may be open although it is written, in collections of different times.
  const existing = isAgain ? await deps.stores.refunds.get(input.refund_id) : null;
  if (existing !== null) return accepted(existing, input.request_id);
  try {
    const work = (session: ClientSession) => reserve(deps, input, session);
    const opened = await inDebitTurn(deps, debitTurn(bookId(input), input.created_at), work);
    if (opened !== null) {
      const { refund_id, payment_id, request_id } = input;
      deps.log.info({ refund_id, payment_id, request_id, status: 'processing' }, 'refund opened');
      return { ...accepted(opened, request_id), isFresh: true };
    }
  } catch (error) {
    if (error instanceof InsufficientBalance) {
      const message = 'The balance does not hold the amount of the refund.';
      return { outcome: 'refused', code: 'insufficient_balance', message };
    }
    throw error;
  }
  return await refused(deps, input);
}

/** As it was first answered, whatever has happened since. */
function accepted(refund: RefundDocument, request_id: string) {
  const facts = factsOf(refund, request_id);
  const senders = senderCheck(refund.livemode);
  return { outcome: 'accepted', facts, status: 'processing', version: 1, senders } as const;
}

/** Why nothing was reserved; the refund itself when another attempt was first. */
async function refused({ stores }: RecordDeps, input: OpenRefund): Promise<RefundOpening> {
  const { refund_id, payment_id, account_id, livemode, amount, accepted_at } = input;
  const claim = await stores.idempotency.forResource(refund_id);
  const written = await stores.refunds.get(refund_id);
  if (written !== null) return accepted(written, input.request_id);
  if (claim === null) {
    throw ApplicationFailure.nonRetryable('No claim holds this refund.', 'claim_missing');
  }
  // Emptied, but no majority has the other attempt's refund yet: try again.
  if (claim.request === null) throw new Error(`The refund ${refund_id} is not to be seen yet.`);
  const payment = await stores.payments.get(payment_id);
  if (payment === null || !isOwn(payment, account_id, livemode)) {
    return { outcome: 'refused', ...notFound('payment') };
  }
  const fault = refundFault(refundable(payment), amount, new Date(accepted_at));
  // Given back by a failed refund between the two looks: try again.
  if (fault === undefined) throw new Error('The remainder changed while it was looked at.');
  return { outcome: 'refused', ...fault };
}

/** Claim and refund are written in one transaction, so once the claim is gone none can follow. */
async function abandonRefund(
  { mongo, stores }: RecordDeps,
  { refund_id, request_id }: OpenRefund,
): Promise<RefundOpening | null> {
  // One session, so that the look can't be at a new primary that does not know of the release yet.
  return await mongo.withSession(async (session) => {
    await stores.idempotency.release(refund_id, session);
    const written = await stores.refunds.get(refund_id, session);
    return written === null ? null : accepted(written, request_id);
  });
}

function changeOf(move: RecordRefundMove): Partial<RefundDocument> {
  const { at, to, change } = move;
  return {
    ...standingOf(move),
    ...(to.includes('settled') ? { settled_at: at } : {}),
    ...change,
  };
}

/** The facts that a workflow needs, from its opening or when it starts again. */
function factsOf(refund: RefundDocument, request_id: string) {
  const { _id, payment_id, account_id, livemode, amount, currency, method, connector } = refund;
  return {
    refund_id: _id,
    ...{ payment_id, account_id, livemode, amount, currency, method, connector },
    payment_bank_reference: refund.payment_bank_reference,
    due_at_ms: Date.parse(refund.due_at),
    request_id,
  };
}

/** State and facts of a refund whose workflow starts again. */
function loaded(refund: RefundDocument, request_id: string) {
  const { status, version, attention } = refund;
  return { facts: factsOf(refund, request_id), status, version, attention };
}
