import { MAIN_BALANCE } from '../src/domain/account/balance-account';
import { notFound } from '../src/domain/errors';
import type { Failure } from '../src/domain/failure';
import { isInSuspense } from '../src/domain/movement/movement';
import { REFUND_EVENTS, REFUND_TRANSITIONS, type RefundStatus } from '../src/domain/refund/refund';
import { refundableAmount, refundFault } from '../src/domain/refund/rules';
import { bookId, operationId } from '../src/ledger/entries';
import { explainShortage } from '../src/ledger/insufficient-balance';
import { buildRefundEntry, settledAmount } from '../src/ledger/resource-entries';
import {
  applyMovements,
  listMovements,
  recordApplied,
  releaseSent,
} from '../src/movements/register';
import type { Stores } from '../src/store';
import type { RefundDocument } from '../src/store/refunds';
import { isOwn, type OpenRefund, reserve } from './refund-reservation';
import { buildLockRequest } from './shared/debit';
import {
  buildAcceptance,
  openReserved,
  type Reservation,
  type ReservedOpening,
  releaseUnlessStored,
  throwMissing,
} from './shared/opening';
import { createRecord } from './shared/record';
import {
  buildCommonChange,
  type RecordDeps,
  type RecordTable,
  type Transition,
} from './shared/record-table';

export type RefundFacts = ReturnType<typeof readFacts>;

export type RefundOpening = ReservedOpening<RefundFacts, RefundStatus>;

export interface RefundChange {
  failure: Failure;
  bank_reference: string;
  /** Minor units; an operator may post less than was requested. */
  settled_amount: number;
}

export function createRefundActivities(deps: RecordDeps) {
  const record = createRecord(deps, recordTable(deps.stores), async (refund, request_id) => ({
    facts: readFacts(refund, request_id),
    movements: await listMovements(deps.stores, refund._id),
  }));
  return {
    openRefund: (input: OpenRefund): Promise<RefundOpening> =>
      openReserved(deps, buildOpening(deps, input)),
    abandonRefund: (input: OpenRefund): Promise<RefundOpening | null> =>
      releaseUnlessStored(deps, buildOpening(deps, input)),
    recordRefundMove: record.transition,
    recordRefundAttention: record.setAttention,
    loadRefund: record.load,
  };
}

function recordTable(stores: Stores): RecordTable<RefundDocument, RefundChange> {
  return {
    resource: 'refund',
    store: stores.refunds,
    transitions: REFUND_TRANSITIONS,
    events: REFUND_EVENTS,
    eventData: ({ _id, payment_id }) => ({ refund_id: _id, payment_id }),
    buildChange,
    posted: ['settled', 'failed'],
    isInSuspense: async ({ _id }) => (await listMovements(stores, _id)).some(isInSuspense),
    post: async (refund, transition, session) => {
      const isFailed = transition.to.includes('failed');
      const sent = isFailed ? 0 : settledAmount(refund);
      const { _id, payment_id, amount } = refund;
      if (sent < amount) {
        await stores.payments.releaseRefund({ payment_id, amount: amount - sent }, session);
      }
      if (isFailed) {
        const released = await releaseSent(stores, 'refund', refund, transition, session);
        await stores.ledger.post(buildRefundEntry('refund_failed', refund, transition), session);
        return released;
      }
      const held = Number((await applyMovements(stores, _id, transition.taken, session)).out);
      const entry = buildRefundEntry('refund_settled', refund, transition, held);
      const applied = { kind: 'refund', direction: 'out', amount: sent - held } as const;
      const moved = { ...applied, entry: operationId(entry) };
      const movements = await recordApplied(stores, refund, transition, moved, session);
      await stores.ledger.post(entry, session);
      return movements;
    },
  };
}

function buildOpening(
  deps: RecordDeps,
  input: OpenRefund,
): Reservation<RefundDocument, RefundOpening> {
  const { refund_id: id, request_id, created_at } = input;
  return {
    ...{ resource: 'refund', id, request_id, get: deps.stores.refunds.get },
    lockRequest: buildLockRequest(bookId(input), created_at),
    reserve: (session) => reserve(deps, input, session),
    accept: (refund) =>
      buildAcceptance(readFacts(refund, request_id), 'processing', refund.livemode),
    refuseDebit: () => refuseDebit(deps, input),
    explainMissing: () => explainRefusal(deps, input),
  };
}

async function refuseDebit({ stores }: RecordDeps, input: OpenRefund): Promise<RefundOpening> {
  const { payment_id, currency, amount } = input;
  const payment = amount === null ? await stores.payments.get(payment_id) : null;
  const remainder = payment === null ? 0 : refundableAmount(payment) - payment.refunded;
  const debit = { balance_account: MAIN_BALANCE, currency, amount: amount ?? remainder };
  return { outcome: 'refused', ...(await explainShortage(stores.ledger, input, debit)) };
}

async function explainRefusal({ stores }: RecordDeps, input: OpenRefund): Promise<RefundOpening> {
  const { refund_id, payment_id, account_id, livemode, amount, accepted_at } = input;
  const record = await stores.idempotency.forResource(refund_id);
  if (!record?.request) return await throwMissing(stores, 'refund', refund_id);
  const payment = await stores.payments.get(payment_id);
  if (payment === null || !isOwn(payment, account_id, livemode)) {
    return { outcome: 'refused', ...notFound('payment') };
  }
  const fault = refundFault(payment, amount, new Date(accepted_at));
  // Released by a failed refund between the two reads: try again.
  if (fault === undefined) throw new Error('The remainder changed while it was looked at.');
  return { outcome: 'refused', ...fault };
}

function buildChange(
  transition: Transition<RefundDocument, RefundChange>,
): Partial<RefundDocument> {
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
