import { z } from 'zod';
import { CALLBACK_RESOURCES, type CallbackResource } from '../banks/callback';

/** Sent to an endpoint that chooses none. @see docs/webhooks.md#events */
export const DEFAULT_EVENT_TYPES = [
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

/** @see docs/webhooks.md#events */
export const EVENT_TYPES = [
  ...DEFAULT_EVENT_TYPES,
  'dispute.opened',
  'dispute.updated',
  'dispute.closed',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

export function findEventResource(type: EventType): CallbackResource | undefined {
  return CALLBACK_RESOURCES.find((kind) => type.startsWith(`${kind.replace('_', '.')}.`));
}

/** @see docs/decisions.md#events */
export function eventIds(type: EventType): string[] {
  const kind = findEventResource(type);
  if (kind === undefined) return [];
  const ofPayment = kind === 'refund' || kind === 'dispute';
  return ofPayment ? [`${kind}_id`, 'payment_id'] : [`${kind}_id`];
}

export function buildTestData(
  type: EventType,
  makeId: () => string,
): Record<string, string | true> {
  return { ...Object.fromEntries(eventIds(type).map((name) => [name, makeId()])), test: true };
}

/** Fixed when the event is recorded. @see docs/webhooks.md#what-is-posted */
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
  const ids = Object.fromEntries(eventIds(type).map((name) => [name, z.string()]));
  const test = z
    .literal(true)
    .optional()
    .meta({ description: 'Only in a test event, which you send yourself.' });
  return WebhookEvent.extend({ type: z.literal(type), data: z.object({ ...ids, test }) });
}

/**
 * `no_endpoint`: none was registered, or it was deleted. `not_subscribed`: the type was not chosen.
 * `disabled`: the endpoint was.
 */
export const DELIVERY_STATUSES = [
  'pending',
  'delivered',
  'exhausted',
  'no_endpoint',
  'not_subscribed',
  'disabled',
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export interface Subscriber {
  endpoint_id: string;
  wants: 'all' | readonly EventType[];
  isDisabled: boolean;
}

export function firstDeliveryStatus(
  { wants, isDisabled }: Pick<Subscriber, 'wants' | 'isDisabled'>,
  type: EventType,
): DeliveryStatus {
  if (isDisabled) return 'disabled';
  const wanted: readonly EventType[] = wants === 'all' ? DEFAULT_EVENT_TYPES : wants;
  return wanted.includes(type) ? 'pending' : 'not_subscribed';
}

export function webhookWorkflowId(event_id: string): string {
  return `webhook:${event_id}`;
}

/** `failing`: disabled by the service after `FAILING_DAYS`. */
export const DISABLED_REASONS = ['merchant', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

export const ENDPOINT_STATUSES = ['enabled', 'disabled'] as const;

/** Account time without a success. @see docs/webhooks.md#an-endpoint-that-keeps-failing */
const FAILING_DAYS = 5;

const DAY_MS = 86_400_000;

export function hasFailedTooLong(failing_since: string, nowMs: number): boolean {
  return nowMs - Date.parse(failing_since) >= FAILING_DAYS * DAY_MS;
}

/** @param enabled_events absent: the default */
export function listEnabledEvents(enabled_events: readonly EventType[] | undefined): EventType[] {
  return [...(enabled_events ?? DEFAULT_EVENT_TYPES)];
}

export const REQUEST_OUTCOMES = ['succeeded', 'refused', 'failed'] as const;

export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number];

/** The caller should change a refused request, and repeat a failed one. */
export function getOutcome(status: number): RequestOutcome {
  if (status < 400) return 'succeeded';
  return status < 500 ? 'refused' : 'failed';
}
