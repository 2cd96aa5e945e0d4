import { DELIVERY_STATUSES, EVENT_TYPES } from '../../domain/webhook/event';
import type { EventDocument } from '../../store/events';
import type { Owner, ServiceDeps } from '../deps';
import { type ListQuery, readPage, singleRow, toBounds } from '../paging';
import { listPage, type Page, type PageQuery } from '../read';
import { findEvent } from './redeliver';

export type { DeliveryDocument } from '../../store/deliveries';
export type { EventDocument } from '../../store/events';

type ReadDeps = Pick<ServiceDeps, 'stores'>;

/** Reads a page of events; a search is the id of an event or of its resource. */
export async function listEvents({ stores }: ReadDeps, owner: Owner, query: ListQuery) {
  const { search, status, method } = query;
  if (search.startsWith('evt_')) return singleRow(await findOwnEvent({ stores }, owner, search));
  const filter = {
    ...owner,
    resource_id: search === '' ? undefined : search,
    type: EVENT_TYPES.find((type) => type === method),
    statuses: status === undefined ? undefined : DELIVERY_STATUSES.filter((one) => one === status),
    ...toBounds(query),
  };
  return await readPage(query, (page) => stores.events.list({ ...filter, ...page }));
}

/** Lists events, newest first; `created_before` is the `next_cursor` of the page before. */
export function listEventsBefore(
  { stores }: ReadDeps,
  { resource_id, ...owner }: Owner & { resource_id: string | undefined },
  page: PageQuery,
): Promise<Page<EventDocument>> {
  return listPage(stores.events, owner, page, { resource_id });
}

/** Reads an event with its attempts, the oldest first. @throws ServiceError `event_not_found` */
export async function readEventHistory({ stores }: ReadDeps, id: string) {
  const event = await findEvent(stores, id);
  return { event, attempts: (await stores.deliveries.forEvent(id)).reverse() };
}

/** Reads an event with its latest attempts, newest first. */
export async function readEvent({ stores }: ReadDeps, owner: Owner, id: string) {
  const event = await findOwnEvent({ stores }, owner, id);
  return event && { event, attempts: await stores.deliveries.forEvent(id) };
}

export async function findOwnEvent(
  { stores }: { stores: Pick<ServiceDeps['stores'], 'events'> },
  { account_id, livemode }: Owner,
  id: string,
): Promise<EventDocument | null> {
  const event = await stores.events.get(id);
  return event?.account_id === account_id && event.livemode === livemode ? event : null;
}
