import type { DeliveryStatus, EventType } from '../domain/webhook/event';

/** Event of a merchant, written in the transaction of its transition. */
export interface EventDocument {
  /** `evt_…`, derived from the resource and its version. */
  _id: string;
  account_id: string;
  livemode: boolean;
  type: EventType;
  created: string;
  resource_id: string;
  /** Position in lists, newest first. @see src/domain/cursor.ts */
  position: string;
  /** Ids of the resource; `test` marks a test event. */
  data: Record<string, string | true>;
  /** Body of every attempt, byte for byte. */
  body: string;
  request_id: string;
  /**
   * Place among the events of the environment for `after`: 0 until a reader gives it a number.
   * Absent in events from before. @see src/service/events/catch-up.ts
   */
  order?: number;
  delivery: EventDelivery;
}

export interface EventDelivery {
  status: DeliveryStatus;
  attempts: number;
  next_attempt_at: string | null;
  run: number;
  /** Endpoint that gets it; absent without one, and in events from before endpoints had ids. */
  endpoint_id?: string;
  /**
   * Endpoint that hangs, present while the delivery waits until it responds; `next_attempt_at` is
   * then the time of its own probe.
   */
  waiting_for?: string;
}

/**
 * Delivery of an event to one endpoint. The oldest endpoint's is in the event itself; each other
 * one has its own document: a copy of the event, with the id of the delivery.
 */
export interface DeliveryRow extends EventDocument {
  /** Present in a document of its own. */
  event_id?: string;
}

/** Attempt of a delivery. */
export interface DeliveryDocument {
  event_id: string;
  /** Present where the delivery has its own document. */
  delivery_id?: string;
  /** 0 for the first delivery, then one for each redelivery. */
  run: number;
  attempt: number;
  at: string;
  /** First attempt of the run, in account time; present where the clock was moved. */
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
  /** Position of the first; `until` is the position after the last. */
  since: string;
  until: string;
  statuses: readonly DeliveryStatus[];
  types?: readonly EventType[] | undefined;
  /** Only deliveries to these endpoints, and those that name none. */
  endpoint_ids?: readonly string[] | undefined;
}
