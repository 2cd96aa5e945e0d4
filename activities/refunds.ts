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
import type { OpenedState, TransitionInput } from './shared/record-inputs';
import { buildCommonChange, type RecordDeps, type RecordTable } from './shared/record-table';

export type RefundFacts = ReturnType<typeof readFacts>;

export type RefundOpening =
  | ({
      outcome: 'accepted';
      facts: RefundFacts;
    } & OpenedState<RefundStatus>)
  | ({ outcome: 'refused' } & RuleViolation);

export interface RefundChange {
  failure: Failure;
  bank_reference: string;
  /** Minor units that the bank sent, where an operator posts less than was requested. */
  settled_amount: number;
}

type RefundTransition = TransitionInput<RefundStatus, RefundAttention, RefundChange>;

export function createRefundActivities(deps: RecordDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  return {
    openRefund: (input: OpenRefund): Promise<RefundOpening> =>
      openWithRetry((isRetry) => openRefund(deps, input, isRetry)),
    /**
     * Releases the key after a refusal, so that no later attempt accepts it.
     * @returns the acceptance, where an attempt was faster
     */
    abandonRefund: (input: OpenRefund): Promise<RefundOpening | null> => abandonRefund(deps, input),
    recordRefundMove: record.transition,
    recordRefundAttention: record.setAttention,
    loadRefund: record.load,
  };
}

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
  // The collections may be restored to different times: a stored refund may still have its request.
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

function buildAcceptance(refund: RefundDocument, request_id: string) {
  const facts = readFacts(refund, request_id);
  const verification = getVerificationMode(refund.livemode);
  return { outcome: 'accepted', facts, status: 'processing', version: 1, verification } as const;
}

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
  // No majority has the other attempt's refund yet: try again.
  if (record.request === null) throw new Error(`The refund ${refund_id} is not visible yet.`);
  const payment = await stores.payments.get(payment_id);
  if (payment === null || !isOwn(payment, account_id, livemode)) {
    return { outcome: 'refused', ...notFound('payment') };
  }
  const fault = refundFault(payment, amount, new Date(accepted_at));
  // Released by a failed refund between the two reads: try again.
  if (fault === undefined) throw new Error('The remainder changed while it was looked at.');
  return { outcome: 'refused', ...fault };
}

async function abandonRefund(
  { mongo, stores }: RecordDeps,
  { refund_id, request_id }: OpenRefund,
): Promise<RefundOpening | null> {
  // One session, so that the read can't go to a new primary without the release.
  return await mongo.withSession(async (session) => {
    await stores.idempotency.release(refund_id, session);
    const storedRefund = await stores.refunds.get(refund_id, session);
    return storedRefund === null ? null : buildAcceptance(storedRefund, request_id);
  });
}

function buildChange(transition: RefundTransition): Partial<RefundDocument> {
  const { at, to, change } = transition;
  return {
    ...buildCommonChange(transition),
    ...(to.includes('settled') ? { settled_at: at } : {}),
    ...change,
  };
}

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

function buildSnapshot(refund: RefundDocument, request_id: string) {
  const { status, version, attention } = refund;
  return { facts: readFacts(refund, request_id), status, version, attention };
}
