import type { DeliveryStatus, EventType } from '../domain/webhook/event';

/** Written in the transaction of its transition. */
export interface EventDocument {
  /** `evt_…`, derived from the resource and its version. */
  _id: string;
  account_id: string;
  livemode: boolean;
  type: EventType;
  created: string;
  resource_id: string;
  /** @see src/domain/cursor.ts */
  position: string;
  /** Ids of the resource; `test` in a test event. */
  data: Record<string, string | true>;
  /** Sent by every attempt, byte for byte. */
  body: string;
  request_id: string;
  /**
   * Place for `after`: 0 until a reader gives it a number.
   * @see src/service/events/catch-up.ts
   */
  order: number;
  delivery: EventDelivery;
}

export interface EventDelivery {
  status: DeliveryStatus;
  attempts: number;
  next_attempt_at: string | null;
  run: number;
  /** Absent without an endpoint. */
  endpoint_id?: string;
  /** Endpoint that hangs, until it responds; `next_attempt_at` is then the delivery's own probe. */
  waiting_for?: string;
}

/**
 * Delivery to one endpoint. The oldest endpoint's is in the event; any other is a copy of the
 * event, with the id of the delivery.
 */
export interface DeliveryRow extends Omit<EventDocument, 'order'> {
  /** Present in a copy. */
  event_id?: string;
}

export interface DeliveryDocument {
  event_id: string;
  /** Present for a copy. */
  delivery_id?: string;
  /** 0, then one for each redelivery. */
  run: number;
  attempt: number;
  at: string;
  /** Account time of the run's first attempt, where the clock was moved. */
  first_at?: string;
  url: string;
  /** Null without a complete response. */
  status_code: number | null;
  error: string | null;
  duration_ms: number;
  response_excerpt: string;
  outcome: 'delivered' | 'failed';
  next_attempt_at: string | null;
}

export function getEventId({ _id, event_id }: Pick<DeliveryRow, '_id' | 'event_id'>): string {
  return event_id ?? _id;
}

export interface ResendFilter {
  account_id: string;
  livemode: boolean;
  /** Inclusive position; `until` is exclusive. */
  since: string;
  until: string;
  statuses: readonly DeliveryStatus[];
  types?: readonly EventType[] | undefined;
  /** Deliveries to these endpoints, and those that name none. */
  endpoint_ids?: readonly string[] | undefined;
}
