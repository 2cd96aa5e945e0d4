import type { EventType } from './event';

/** Facts of an event that its attempts need: ids only, nothing personal. */
export interface DeliveredEvent {
  account_id: string;
  livemode: boolean;
  type: EventType;
  /** Bytes that every attempt posts, unchanged. */
  body: string;
}

/** Input of the `webhookDelivery` workflow. */
export interface WebhookDeliveryInput {
  event_id: string;
  /** Number of redeliveries before this one; 0 is the delivery that the event itself started. */
  run: number;
  request_id: string;
  /** Set where an earlier workflow of this run was lost: its attempts count. */
  resume?: true;
  /** Absent from deliveries that earlier versions started, which read the event instead. */
  event?: DeliveredEvent;
}

/** Type of the failure that ends a delivery: all attempts were made. */
export const WEBHOOK_EXHAUSTED = 'WebhookExhausted';
