import type { EventType } from './event';

/** The event fields that a delivery needs; never personal, because Temporal stores them. */
export interface DeliveredEvent {
  account_id: string;
  livemode: boolean;
  type: EventType;
  /** Bytes that every attempt posts, unchanged. */
  body: string;
}

export interface WebhookDeliveryInput {
  event_id: string;
  /** Absent: the event is the delivery. */
  delivery_id?: string;
  /** Absent: the oldest, in deliveries from before endpoints had ids. */
  endpoint_id?: string;
  run: number;
  request_id: string;
  /** Set for a test event, which has one attempt. */
  attempts_max?: 1;
  /** Set if an earlier workflow of this run was lost: its attempts count. */
  resume?: true;
  event: DeliveredEvent;
}

export const WEBHOOK_EXHAUSTED = 'WebhookExhausted';

/** Names the document that holds the delivery. */
export function getDeliveryId({
  event_id,
  delivery_id = event_id,
}: Pick<WebhookDeliveryInput, 'event_id' | 'delivery_id'>): string {
  return delivery_id;
}
