import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession } from 'mongodb';
import { insufficientBalance } from '../src/domain/account/balance';
import { MAIN_BALANCE } from '../src/domain/account/balance-account';
import { getVerificationMode } from '../src/domain/callback/signature';
import { notFound } from '../src/domain/errors';
import type { Failure, RuleViolation } from '../src/domain/lifecycle';
import {
  REFUND_EVENTS,
  REFUND_TRANSITIONS,
  type RefundAttention,
  type RefundStatus,
} from '../src/domain/refund/refund';
import { refundableAmount, refundFault } from '../src/domain/refund/rules';
import { bookId, InsufficientBalance } from '../src/ledger/entries';
import { buildRefundEntry, settledAmount } from '../src/ledger/resource-entries';
import type { Stores } from '../src/store';
import type { RefundDocument } from '../src/store/refunds';
import { isOwn, type OpenRefund, reserve } from './refund-reservation';
import { buildLockRequest, withDebitLock } from './shared/debit';
import { createRecord, openWithRetry } from './shared/record';
import type { OpenedState, RecordMove } from './shared/record-inputs';
import { buildCommonChange, type RecordDeps, type RecordTable } from './shared/record-table';

/** Facts for the workflow to go on with; the amount is known now. */
export type RefundFacts = ReturnType<typeof readFacts>;

export type RefundOpening =
  | ({
      outcome: 'accepted';
      facts: RefundFacts;
    } & OpenedState<RefundStatus>)
  /** Nothing is stored and nothing moved. */
  | ({ outcome: 'refused' } & RuleViolation);

/** Fields of a refund that a transition changes besides its status. */
export interface RefundChange {
  failure: Failure;
  bank_reference: string;
  /** Minor units that the bank sent, where an operator posts less than was requested. */
  settled_amount: number;
}

type RecordRefundMove = RecordMove<RefundStatus, RefundAttention, RefundChange>;

/** The writes of a refund's lifecycle. One activity is one idempotent step. */
export function createRefundActivities(deps: RecordDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  return {
    /** Reserves the amount, debits the balance and writes the refund, or says why not. */
    openRefund: (input: OpenRefund): Promise<RefundOpening> =>
      openWithRetry((isRetry) => openRefund(deps, input, isRetry)),
    /**
     * Frees the key after a refusal, so that no attempt still under way can be accepted later.
     * @returns the acceptance, should one have been faster; null when there is none
     */
    abandonRefund: (input: OpenRefund): Promise<RefundOpening | null> => abandonRefund(deps, input),
    recordRefundMove: record.transition,
    recordRefundAttention: record.setAttention,
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
  ReturnType<typeof buildSnapshot>
> {
  return {
    resource: 'refund',
    store: stores.refunds,
    transitions: REFUND_TRANSITIONS,
    events: REFUND_EVENTS,
    eventData: ({ _id, payment_id }) => ({ refund_id: _id, payment_id }),
    buildChange,
    posted: ['settled', 'failed'],
    post: async (refund, transition, session) => {
      const kind = transition.to.includes('failed') ? 'refund_failed' : 'refund_settled';
      const sentAmount = kind === 'refund_failed' ? 0 : settledAmount(refund);
      const { payment_id, amount } = refund;
      if (sentAmount < amount) {
        await stores.payments.releaseRefund({ payment_id, amount: amount - sentAmount }, session);
      }
      await stores.ledger.post(buildRefundEntry(kind, refund, transition), session);
    },
    buildSnapshot,
  };
}

async function openRefund(
  deps: RecordDeps,
  input: OpenRefund,
  isRetry: boolean,
): Promise<RefundOpening> {
  // Its idempotency record may be open although it is written, in collections of different times.
  const existing = isRetry ? await deps.stores.refunds.get(input.refund_id) : null;
  if (existing !== null) return buildAcceptance(existing, input.request_id);
  try {
    const work = (session: ClientSession) => reserve(deps, input, session);
    const refund = await withDebitLock(
      deps,
      buildLockRequest(bookId(input), input.created_at),
      work,
    );
    if (refund !== null) {
      const { refund_id, payment_id, request_id } = input;
      deps.log.info({ refund_id, payment_id, request_id, status: 'processing' }, 'refund opened');
      return buildAcceptance(refund, request_id);
    }
  } catch (error) {
    if (error instanceof InsufficientBalance) return await refuseDebit(deps, input);
    throw error;
  }
  return await explainRefusal(deps, input);
}

async function refuseDebit(
  { stores }: RecordDeps,
  { account_id, livemode, payment_id, currency, amount }: OpenRefund,
): Promise<RefundOpening> {
  const rows = await stores.ledger.balances(account_id, livemode);
  const payment = amount === null ? await stores.payments.get(payment_id) : null;
  const remainder = payment === null ? 0 : refundableAmount(payment) - payment.refunded;
  const debit = { balance_account: MAIN_BALANCE, currency, amount: amount ?? remainder };
  return { outcome: 'refused', ...insufficientBalance(rows, debit) };
}

/** As it was first answered, whatever has happened since. */
function buildAcceptance(refund: RefundDocument, request_id: string) {
  const facts = readFacts(refund, request_id);
  const verification = getVerificationMode(refund.livemode);
  return { outcome: 'accepted', facts, status: 'processing', version: 1, verification } as const;
}

/** Why nothing was reserved; the refund itself when another attempt was first. */
async function explainRefusal({ stores }: RecordDeps, input: OpenRefund): Promise<RefundOpening> {
  const { refund_id, payment_id, account_id, livemode, amount, accepted_at } = input;
  const record = await stores.idempotency.forResource(refund_id);
  const storedRefund = await stores.refunds.get(refund_id);
  if (storedRefund !== null) return buildAcceptance(storedRefund, input.request_id);
  if (record === null) {
    throw ApplicationFailure.nonRetryable(
      'No idempotency record holds this refund.',
      'idempotency_record_missing',
    );
  }
  // Cleared, but no majority has the other attempt's refund yet: try again.
  if (record.request === null) throw new Error(`The refund ${refund_id} is not visible yet.`);
  const payment = await stores.payments.get(payment_id);
  if (payment === null || !isOwn(payment, account_id, livemode)) {
    return { outcome: 'refused', ...notFound('payment') };
  }
  const fault = refundFault(payment, amount, new Date(accepted_at));
  // Given back by a failed refund between the two looks: try again.
  if (fault === undefined) throw new Error('The remainder changed while it was looked at.');
  return { outcome: 'refused', ...fault };
}

/** Idempotency record and refund are written in one transaction, so none can follow once it is gone. */
async function abandonRefund(
  { mongo, stores }: RecordDeps,
  { refund_id, request_id }: OpenRefund,
): Promise<RefundOpening | null> {
  // One session, so that the look can't be at a new primary that does not know of the release yet.
  return await mongo.withSession(async (session) => {
    await stores.idempotency.release(refund_id, session);
    const storedRefund = await stores.refunds.get(refund_id, session);
    return storedRefund === null ? null : buildAcceptance(storedRefund, request_id);
  });
}

function buildChange(transition: RecordRefundMove): Partial<RefundDocument> {
  const { at, to, change } = transition;
  return {
    ...buildCommonChange(transition),
    ...(to.includes('settled') ? { settled_at: at } : {}),
    ...change,
  };
}

/** The facts that a workflow needs, from its opening or when it starts again. */
function readFacts(refund: RefundDocument, request_id: string) {
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
function buildSnapshot(refund: RefundDocument, request_id: string) {
  const { status, version, attention } = refund;
  return { facts: readFacts(refund, request_id), status, version, attention };
}
