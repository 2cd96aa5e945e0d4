import { type Api, type CallOptions, route } from '../api';
import { createList } from '../list';
import type { WebhookEvent } from '../schema';

/** How an event reached one endpoint. */
export interface EventDelivery {
  endpoint_id: string;
  /** `pending` while attempts remain. */
  status: string;
  /** Over all runs. */
  attempts: number;
  next_attempt_at: string | null;
}

export interface Event {
  id: string;
  object: 'event';
  type: WebhookEvent['type'];
  created: string;
  livemode: boolean;
  data: Record<string, unknown>;
  deliveries: EventDelivery[];
}

export interface ListEventsQuery {
  limit?: number;
  type?: WebhookEvent['type'];
  /** Any ID in `data`: a payment's also finds the events of its refunds. */
  resource_id?: string;
  created_before?: string;
  /** ID of the last event that you know: the rows are those after it, the oldest first. */
  after?: string;
}

export function createEvents(api: Api) {
  return {
    get: (id: string, options?: CallOptions) =>
      api.get<Event>(route`/v1/events/${id}`, {}, options),
    /** Newest first; with `after`, the oldest first, to catch up. */
    list: (query: ListEventsQuery = {}, options?: CallOptions) =>
      createList<Event>(api, {
        ...{ path: '/v1/events', query: { ...query }, options },
        cursor: query.after === undefined ? 'created_before' : 'after',
      }),
  };
}
