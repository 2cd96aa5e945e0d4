import { z } from 'zod';

/** @see docs/webhooks.md#events */
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

/** Ids in the data of an event, by the first words of its type. @see docs/decisions.md#events */
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

export function eventIds(type: EventType): string[] {
  const { test, ...idFields } = findDataSchema(type)?.shape ?? {};
  return Object.keys(idFields);
}

export function buildTestData(
  type: EventType,
  makeId: () => string,
): Record<string, string | true> {
  return { ...Object.fromEntries(eventIds(type).map((name) => [name, makeId()])), test: true };
}

function findDataSchema(type: EventType) {
  return Object.entries(EVENT_DATA).find(([prefix]) => type.startsWith(`${prefix}.`))?.[1];
}

/** Webhook body, fixed when the event is recorded. @see docs/webhooks.md#what-is-posted */
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

export function buildEventSchema(type: EventType) {
  return WebhookEvent.extend({
    type: z.literal(type),
    data: findDataSchema(type) ?? WebhookEvent.shape.data,
  });
}

/** `no_endpoint`: none was registered. `not_subscribed`: the endpoint did not choose this type. */
export const DELIVERY_STATUSES = [
  'pending',
  'delivered',
  'exhausted',
  'no_endpoint',
  'not_subscribed',
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export type Subscription = 'all' | readonly EventType[] | null;

export function firstDeliveryStatus(subscription: Subscription, type: EventType) {
  if (subscription === null) return 'no_endpoint';
  return subscription === 'all' || subscription.includes(type) ? 'pending' : 'not_subscribed';
}

/** A redelivery starts a new run with the same id. */
export function webhookWorkflowId(eventId: string): string {
  return `webhook:${eventId}`;
}
