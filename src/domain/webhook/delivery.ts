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
  run: number;
  request_id: string;
  /** Set if an earlier workflow of this run was lost: its attempts count. */
  resume?: true;
  event: DeliveredEvent;
}

export const WEBHOOK_EXHAUSTED = 'WebhookExhausted';
