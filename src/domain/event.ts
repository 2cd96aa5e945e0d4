import { z } from 'zod';

/** Events that merchants are told of. @see docs/webhooks.md#events */
export const EVENT_TYPES = [
  'payment.awaiting_customer',
  'payment.authorized',
  'payment.settled',
  'payment.failed',
  'payment.cancelled',
  'payment.expired',
  'refund.settled',
  'refund.failed',
  'payout.submitted',
  'payout.sent',
  'payout.completed',
  'payout.failed',
  'payout.returned',
  'crypto.payment.received',
  'crypto.payment.underpaid',
  'crypto.payment.held',
  'crypto.payment.expired',
  'crypto.settlement.completed',
  'crypto.settlement.failed',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/**
 * Ids of the resource that moved, by the first words of the event's type.
 * @see docs/decisions.md#events
 */
const EVENT_DATA = {
  payment: ids('payment_id'),
  refund: ids('refund_id', 'payment_id'),
  payout: ids('payout_id'),
  'crypto.payment': ids('crypto_payment_id'),
  'crypto.settlement': ids('crypto_settlement_id'),
} as const;

function ids(...names: string[]) {
  const test = z
    .literal(true)
    .optional()
    .meta({ description: 'Only in a test event that you send from the dashboard.' });
  return z.object({ ...Object.fromEntries(names.map((name) => [name, z.string()])), test });
}

/** Names of the ids that the data of an event holds. */
export function eventIds(type: EventType): string[] {
  const { test, ...named } = dataOf(type)?.shape ?? {};
  return Object.keys(named);
}

/** Data of a test event: made-up ids of what would have moved, and that it is a test. */
export function testData(type: EventType, makeId: () => string): Record<string, string | true> {
  return { ...Object.fromEntries(eventIds(type).map((name) => [name, makeId()])), test: true };
}

function dataOf(type: EventType) {
  return Object.entries(EVENT_DATA).find(([words]) => type.startsWith(`${words}.`))?.[1];
}

/** The body of a webhook, frozen when the fact is recorded. @see docs/webhooks.md#what-is-posted */
export const WebhookEvent = z.object({
  id: z
    .string()
    .regex(/^evt_[0-9a-f-]{36}$/)
    .meta({ description: 'Deduplicate on it.' }),
  type: z.enum(EVENT_TYPES),
  created: z.iso.datetime({ precision: 3 }),
  livemode: z.boolean(),
  data: z.record(z.string(), z.union([z.string(), z.literal(true)])),
});

export type WebhookEvent = z.infer<typeof WebhookEvent>;

/** Schema of an event of one type, with that type's own data. */
export function webhookEventOf(type: EventType) {
  return WebhookEvent.extend({
    type: z.literal(type),
    data: dataOf(type) ?? WebhookEvent.shape.data,
  });
}

/**
 * States of an event's delivery; `no_endpoint` means that none was registered at the time,
 * `not_subscribed` that it did not want this type.
 */
export const DELIVERY_STATUSES = [
  'pending',
  'delivered',
  'exhausted',
  'no_endpoint',
  'not_subscribed',
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Event types that an endpoint wants; null where there is no endpoint. */
export type Subscription = 'all' | readonly EventType[] | null;

/** State in which the delivery of a new event begins. @see docs/webhooks.md#choose-the-events */
export function firstDeliveryStatus(subscription: Subscription, type: EventType) {
  if (subscription === null) return 'no_endpoint';
  return subscription === 'all' || subscription.includes(type) ? 'pending' : 'not_subscribed';
}

/** Id of the workflow that delivers an event; a redelivery starts the same id anew. */
export function webhookWorkflowId(eventId: string): string {
  return `webhook:${eventId}`;
}
