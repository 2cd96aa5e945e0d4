import { type Api, type CallOptions, route } from '../api';
import { createList } from '../list';
import type {
  Delivery,
  Event,
  EventWithLog,
  ListEventsQuery,
  RedeliverEvent,
  WebhookEvent,
} from '../schema';

export type { Event, ListEventsQuery } from '../schema';

/** Event as its webhook has it, with how it reached the endpoints. */
export type ListedEvent = WebhookEvent & Pick<Event, 'object' | 'deliveries'>;

/** How an event reached one endpoint. */
export type EventDelivery = Delivery;

export function createEvents(api: Api) {
  return {
    get: (id: string, options?: CallOptions) =>
      api.get<ListedEvent & Pick<EventWithLog, 'deliveries'>>(route`/v1/events/${id}`, {}, options),
    /** Newest first; with `after`, the oldest first, to catch up. */
    list: (query: ListEventsQuery = {}, options?: CallOptions) =>
      createList<ListedEvent>(api, {
        ...{ path: '/v1/events', query: { ...query }, options },
        cursor: query.after === undefined ? 'created_before' : 'after',
      }),
    /** Sends it again, to one endpoint or to all that want it; not repeated when it fails. */
    redeliver: (id: string, body: RedeliverEvent = {}, options?: CallOptions) =>
      api.postOnce<Event>(route`/v1/events/${id}/redeliver`, body, options),
  };
}
