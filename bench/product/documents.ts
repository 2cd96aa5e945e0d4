import { randomUUID } from 'node:crypto';
import { buildEvents, positionAt } from '../../activities/shared/events';
import type { RecordedEvents } from '../../src/service/events/deliveries';
import { buildDelivery } from '../../src/store/deliveries';
import type { EventDocument } from '../../src/store/events';
import type { PaymentDocument } from '../../src/store/payments';

type PaymentFacts = Pick<PaymentDocument, 'account_id' | 'created_at'> & Partial<PaymentDocument>;

/** Builds a payment as the product writes it: settled at once, unless `facts` say otherwise. */
export function buildPayment(facts: PaymentFacts): PaymentDocument {
  const _id = facts._id ?? randomUUID();
  const at = facts.created_at;
  return {
    ...{ _id, livemode: false, amount: 1_050, currency: 'EUR', country: 'NL' },
    ...{ status: 'settled', version: 4, transition: 4, position: positionAt(at) },
    ...{ method: 'ideal', connector: 'sandbox', reference: `order-${_id}`, metadata: '{}' },
    customer: { reference: null, ciphertext: null },
    ...{ failure: null, refunded: 0, bank_reference: _id, session_url: null, attention: null },
    ...{ updated_at: at, authorized_at: at, settled_at: at, cancelled_at: null, expires_at: at },
    success_url: 'https://merchant.example/success',
    error_url: 'https://merchant.example/error',
    ...{ token_hash: _id, browser_hash: null, opened_at: null, request_id: _id, audit: [] },
    ...facts,
  };
}

const TRANSITIONS = [
  { type: 'payment.awaiting_customer', transition: 2 },
  { type: 'payment.authorized', transition: 3 },
  { type: 'payment.settled', transition: 4 },
] as const;

type Source = Pick<PaymentDocument, '_id' | 'account_id' | 'created_at' | 'transition'>;

/** Builds the events of a sandbox payment up to a transition. */
export function buildPaymentEvents({
  _id,
  account_id,
  created_at: at,
  transition: last,
}: Source): EventDocument[] {
  const source = { resource: 'payment', resource_id: _id, account_id, livemode: false } as const;
  const transitions = TRANSITIONS.filter(({ transition }) => transition <= last);
  const about = { ...source, at, data: { payment_id: _id }, request_id: _id, transitions };
  return [...buildEvents(about, []).events];
}

/** The only endpoint of a merchant of `createMerchants`. */
export function toEndpointId(account_id: string): string {
  return account_id.replace('acct_', 'we_');
}

/** Builds an event each of payments that are not stored, a millisecond apart: their order is unique. */
export function buildSettledEvents(account_id: string, count: number): EventDocument[] {
  const now = Date.now();
  return Array.from({ length: count }, (_, n) => {
    const created_at = new Date(now + n).toISOString();
    const payment = { _id: randomUUID(), account_id, created_at, transition: 4 };
    return buildPaymentEvents(payment).slice(-1);
  }).flat();
}

/** Adds the deliveries of events to endpoints, by default to the only one of the merchant. */
export function addDeliveries(
  events: readonly EventDocument[],
  endpoint_ids?: readonly string[],
): RecordedEvents {
  const deliveries = events.flatMap((event) =>
    (endpoint_ids ?? [toEndpointId(event.account_id)]).map((endpoint_id) =>
      buildDelivery(event, endpoint_id, 'pending'),
    ),
  );
  return { events, deliveries };
}
