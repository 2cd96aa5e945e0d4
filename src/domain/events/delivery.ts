import type { EventType } from './event';

/** Never personal: Temporal stores it. */
export interface DeliveredEvent {
  account_id: string;
  livemode: boolean;
  type: EventType;
  /** Posted by every attempt, unchanged. */
  body: string;
}

interface EventInput {
  event_id: string;
  request_id: string;
  /** A test event has one attempt. */
  attempts_max?: 1;
  event: DeliveredEvent;
}

/** Argument of the update `redeliver`, too. */
export interface DeliveryTarget {
  endpoint_id: string;
  /** 0, then one for each redelivery. */
  run: number;
  /** An earlier workflow of this run was lost: its attempts count. */
  resume?: true;
}

export interface WebhookDeliveryInput extends EventInput {
  endpoints: DeliveryTarget[];
}

export interface EndpointDeliveryInput extends EventInput, DeliveryTarget {}

/** Names an activity of the event's workflow, too: its ID is the endpoint's. */
export type DeliveryKey = Pick<EndpointDeliveryInput, 'event_id' | 'endpoint_id'>;

export const REDELIVER = 'redeliver';

export const WEBHOOK_EXHAUSTED = 'WebhookExhausted';

export function getDeliveryId({ event_id, endpoint_id }: DeliveryKey): string {
  return `${event_id}:${endpoint_id}`;
}
