import { createHash } from 'node:crypto';
import type { Db, Document } from 'mongodb';
import { positionAt } from '../../activities/shared/events';
import { buildPayment, buildPaymentEvents, toEndpointId } from '../../bench/product/documents';
import type { PaymentStatus } from '../../src/domain/payment/payment';
import type { CallbackDocument } from '../../src/store/callbacks';
import { buildDelivery, type DeliveryRow } from '../../src/store/deliveries';
import type { DisputeDocument } from '../../src/store/disputes';
import type { EventDocument } from '../../src/store/events';
import type { PaymentDocument } from '../../src/store/payments';
import type { PayoutDocument } from '../../src/store/payouts';
import type { RefundDocument } from '../../src/store/refunds';

/** Merchants: the first has half of everything, the others share the rest. */
const MERCHANTS = 100;
const SPAN_MS = 365 * 24 * 60 * 60_000;
/** Payments to one refund and one payout. */
const SENT_EVERY = 10;
/** Payments to one event that waits, one that was given up and one callback that waits. */
const TROUBLE_EVERY = 500;
const METHODS = ['ideal', 'visa', 'multibanco'] as const;

/** Payments to one that is under way, and to one of each rarer end; all others are settled. */
const RARER: readonly (readonly [number, PaymentStatus])[] = [
  [1_000, 'awaiting_customer'],
  [700, 'authorized'],
  [50, 'failed'],
  [20, 'cancelled'],
  [7, 'expired'],
];

export const LARGE_MERCHANT = merchant(0);

/** Id that n alone decides, so that a query can name a row without having read one. */
export function buildId(kind: string, n: number): string {
  const hex = createHash('sha256').update(`${kind} ${n}`).digest('hex');
  const [a, b, c, d] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(13, 16), hex.slice(17, 20)];
  return `${a}-${b}-4${c}-8${d}-${hex.slice(20, 32)}`;
}

export function calculateTime(n: number, total: number, until: number): string {
  return new Date(until - SPAN_MS + Math.floor((n * SPAN_MS) / total)).toISOString();
}

export async function fillLists(
  db: Db,
  { total, until }: { total: number; until: number },
): Promise<void> {
  const numbers = Array.from({ length: total }, (_, n) => n);
  const payments = numbers.map((n) => paymentAt(n, calculateTime(n, total, until)));
  const some = (every: number) => payments.filter((_, n) => n % every === 0);
  const rows: Record<string, Document[]> = {
    payments,
    events: payments.map(buildEventRow),
    deliveries: payments.map(buildDeliveryRow),
    refunds: some(SENT_EVERY).map(buildRefundRow),
    payouts: some(SENT_EVERY).map(buildPayoutRow),
    bank_callbacks: some(TROUBLE_EVERY).map(buildCallbackRow),
  };
  for (const [name, documents] of Object.entries(rows)) {
    await db.collection(name).insertMany(documents);
  }
}

function merchant(n: number): string {
  return `acct_${buildId('account', n)}`;
}

/** A payment; one that is settled was settled at once. */
export function paymentAt(n: number, at: string): PaymentDocument {
  const _id = buildId('payment', n);
  const account_id = n % 2 === 0 ? LARGE_MERCHANT : merchant(1 + (((n - 1) / 2) % (MERCHANTS - 1)));
  const pair = Math.floor(n / 2);
  const status = RARER.find(([every]) => pair % every === every - 1)?.[1] ?? 'settled';
  return buildPayment({
    ...{ _id, account_id, status, created_at: at, amount: 1 + (n % 1_000) },
    ...{ position: positionAt(at, n % 999_000), reference: `order-${n}` },
    method: METHODS[pair % METHODS.length] ?? 'ideal',
  });
}

function shared(payment: PaymentDocument) {
  const { account_id, livemode, amount, currency, method, connector, position } = payment;
  const { created_at, updated_at, request_id, bank_reference } = payment;
  return {
    ...{ account_id, livemode, amount, currency, method, connector, position },
    ...{ created_at, updated_at, request_id, bank_reference },
    ...{ version: 2, transition: 2, failure: null, attention: null, audit: [], due_at: created_at },
  };
}

export function buildRefundRow(payment: PaymentDocument, n: number): RefundDocument {
  return {
    ...shared(payment),
    _id: `${payment._id.slice(0, 14)}5${payment._id.slice(15)}`,
    status: n % 97 === 0 ? 'processing' : n % 31 === 0 ? 'failed' : 'settled',
    ...{ payment_id: payment._id, reason: null, settled_at: payment.settled_at },
    payment_bank_reference: payment.bank_reference,
  };
}

export function buildPayoutRow(payment: PaymentDocument, n: number): PayoutDocument {
  const { _id, reference, created_at: at } = payment;
  return {
    ...shared(payment),
    _id: `${_id.slice(0, 14)}6${_id.slice(15)}`,
    status: n % 97 === 0 ? 'sent' : n % 31 === 0 ? 'returned' : 'completed',
    ...{ method: 'sepa_instant', fee: 0, recipient_id: _id, balance_account: 'main' },
    ...{ reference, metadata: '{}', returned: null, sent_at: at, completed_at: at },
  };
}

/** A dispute that took all of a payment, and waits for an answer. */
export function buildDisputeRow(payment: PaymentDocument): DisputeDocument {
  const { _id, account_id, created_at: at, amount } = payment;
  const money = { amount, fee: 0, held: amount, owed: 0 };
  const transfer = { direction: 'out', ...money, at, by: 'b-1' } as const;
  return {
    ...shared(payment),
    _id: `dp_${_id.slice(0, 14)}7${_id.slice(15)}`,
    ...{ account_id, payment_id: _id, name: 'D-1', kind: 'dispute_opened', fee: 0 },
    ...{ status: 'needs_response', reason: '13.1', transfers: [transfer] },
    evidence_due_at: new Date(Date.parse(at) + 7 * 86_400_000).toISOString(),
    ...{ evidence_submitted_at: null, closed_at: null },
  };
}

function buildEventRow(payment: PaymentDocument): EventDocument {
  const event = buildPaymentEvents(payment).at(-1);
  if (event === undefined) throw new RangeError('A transition has an event.');
  return event;
}

function buildDeliveryRow(payment: PaymentDocument, n: number): DeliveryRow {
  const endpoint_id = toEndpointId(payment.account_id);
  const pending = buildDelivery(buildEventRow(payment), endpoint_id, 'pending');
  if (n % TROUBLE_EVERY === 0) return pending;
  const ended = { ...pending, next_attempt_at: null };
  return n % TROUBLE_EVERY === 2
    ? { ...ended, status: 'exhausted', attempts: 12 }
    : { ...ended, status: 'delivered', attempts: 1 };
}

function buildCallbackRow(payment: PaymentDocument, n: number): CallbackDocument {
  const { _id: resource_id, connector, created_at } = payment;
  return {
    _id: `${connector}:${resource_id}`,
    ...{ connector, resource: 'payment', resource_id, name: 'settled' },
    body: { callback_id: resource_id, occurred_at: created_at },
    ...{ received_at: created_at, signalled_at: null, unapplied: null },
    parked: n % 2 === 0 ? 'There is no such payment.' : null,
  };
}
