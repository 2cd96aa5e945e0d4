import type { ClientSession } from 'mongodb';
import { abandon } from '../src/base/mongo';
import { notFound } from '../src/domain/errors';
import type { Failure } from '../src/domain/failure';
import { MAIN_BALANCE } from '../src/domain/money/money';
import {
  REFUND_EVENTS,
  REFUND_TRANSITIONS,
  type RefundInput,
  type RefundStatus,
  refundableAmount,
  refundFault,
} from '../src/domain/refund/refund';
import { bookId, operationId } from '../src/ledger/entries';
import { explainShortage } from '../src/ledger/locks';
import { buildRefundEntry, settledAmount } from '../src/ledger/resource-entries';
import {
  applyMovements,
  listMovements,
  recordApplied,
  releaseSent,
} from '../src/movements/register';
import type { PaymentDocument } from '../src/store/payments';
import type { RefundDocument } from '../src/store/refunds';
import { positionAt } from './shared/events';
import {
  buildAcceptance,
  buildLockRequest,
  openReserved,
  type Reservation,
  type ReservedOpening,
  releaseUnlessStored,
  throwMissing,
} from './shared/opening';
import { createRecord } from './shared/record';
import { buildCommonChange, type RecordDeps, type RecordTable } from './shared/record-table';

export type RefundFacts = ReturnType<typeof readFacts>;

type RefundOpening = ReservedOpening<RefundFacts, RefundStatus>;

export interface RefundChange {
  failure: Failure;
  bank_reference: string;
  /** Minor units; an operator may post less than was requested. */
  settled_amount: number;
}

export function createRefundActivities(deps: RecordDeps) {
  const { stores } = deps;
  const table: RecordTable<RefundDocument, RefundChange> = {
    resource: 'refund',
    store: stores.refunds,
    transitions: REFUND_TRANSITIONS,
    events: REFUND_EVENTS,
    eventData: ({ _id, payment_id }) => ({ refund_id: _id, payment_id }),
    buildChange: (transition) => {
      const { at, to, change } = transition;
      return {
        ...buildCommonChange(transition),
        ...(to.includes('settled') ? { settled_at: at } : {}),
        ...change,
      };
    },
    posted: ['settled', 'failed'],
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
  const record = createRecord(deps, table, async (refund, request_id) => ({
    facts: readFacts(refund, request_id),
    movements: await listMovements(stores, refund._id),
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

function buildOpening(
  deps: RecordDeps,
  input: OpenRefund,
): Reservation<RefundDocument, RefundOpening> {
  const { stores } = deps;
  const { refund_id: id, request_id, created_at, payment_id, currency, amount } = input;
  return {
    ...{ resource: 'refund', id, request_id, get: stores.refunds.get },
    lockRequest: buildLockRequest(bookId(input), created_at),
    reserve: (session) => reserve(deps, input, session),
    accept: (refund) =>
      buildAcceptance(readFacts(refund, request_id), 'processing', refund.livemode),
    refuseDebit: async () => {
      const payment = amount === null ? await stores.payments.get(payment_id) : null;
      const remainder = payment === null ? 0 : refundableAmount(payment) - payment.refunded;
      const debit = { balance_account: MAIN_BALANCE, currency, amount: amount ?? remainder };
      return { outcome: 'refused', ...(await explainShortage(stores.ledger, input, debit)) };
    },
    explainMissing: async () => {
      const record = await stores.idempotency.forResource(id);
      if (!record?.request) return await throwMissing(stores, 'refund', id);
      const payment = await stores.payments.get(payment_id);
      if (payment === null || !isOwn(payment, input)) {
        return { outcome: 'refused', ...notFound('payment') };
      }
      const fault = refundFault(payment, amount, new Date(input.accepted_at));
      // Released by a failed refund between the two reads: try again.
      if (fault === undefined) throw new Error('The remainder changed while it was looked at.');
      return { outcome: 'refused', ...fault };
    },
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

type OpenRefund = RefundInput & {
  created_at: string;
};

/**
 * Reserves on the payment first, where concurrent refunds conflict.
 * @returns null when the payment does not allow it, or another attempt was first
 * @throws InsufficientBalance
 */
async function reserve(
  { stores }: Pick<RecordDeps, 'stores'>,
  input: OpenRefund,
  session: ClientSession,
): Promise<RefundDocument | null> {
  const { refund_id, payment_id, account_id, livemode, created_at, request_id } = input;
  const payment = await stores.payments.reserveRefund(payment_id, input.amount, session);
  if (payment === null || !isOwn(payment, input)) return await abandon(session);
  if (refundFault(payment, input.amount, new Date(input.accepted_at))) {
    return await abandon(session);
  }
  const request = await stores.idempotency.clearRequest(refund_id, session);
  if (request === null || !('refund' in request)) return await abandon(session);
  const { reason } = request.refund;
  const { method, connector, currency, bank_reference } = payment;
  const due = Date.parse(created_at) + input.due_seconds * 1_000;
  const refund: RefundDocument = {
    _id: refund_id,
    ...{ account_id, livemode, payment_id, reason, currency, method, connector, request_id },
    version: 1,
    transition: 1,
    position: positionAt(created_at),
    amount: input.amount ?? refundableAmount(payment) - payment.refunded,
    status: 'processing',
    failure: null,
    settled_at: null,
    created_at,
    updated_at: created_at,
    payment_bank_reference: bank_reference,
    bank_reference: null,
    due_at: new Date(due).toISOString(),
    attention: null,
    audit: [],
  };
  const entry = buildRefundEntry('refund_accepted', refund, { at: created_at });
  await stores.ledger.post(entry, session);
  await stores.refunds.insert(refund, session);
  return refund;
}

function isOwn(payment: PaymentDocument, { account_id, livemode }: OpenRefund): boolean {
  return payment.account_id === account_id && payment.livemode === livemode;
}
