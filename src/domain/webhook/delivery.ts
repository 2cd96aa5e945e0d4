import type { EventType } from './event';

/** Never personal: Temporal stores it. */
export interface DeliveredEvent {
  account_id: string;
  livemode: boolean;
  type: EventType;
  /** Posted by every attempt, unchanged. */
  body: string;
}

export interface WebhookDeliveryInput {
  event_id: string;
  /** Absent: the event is the delivery. */
  delivery_id?: string;
  endpoint_id: string;
  run: number;
  request_id: string;
  /** A test event has one attempt. */
  attempts_max?: 1;
  /** An earlier workflow of this run was lost: its attempts count. */
  resume?: true;
  event: DeliveredEvent;
}

export const WEBHOOK_EXHAUSTED = 'WebhookExhausted';

export function getDeliveryId({
  event_id,
  delivery_id = event_id,
}: Pick<WebhookDeliveryInput, 'event_id' | 'delivery_id'>): string {
  return delivery_id;
}
