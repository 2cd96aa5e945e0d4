import { DELIVERY_STATUSES, type DeliveryStatus, EVENT_TYPES } from '../../domain/webhook/event';
import { type DeliveryRow, getEventId } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';
import type { ListFilter } from '../../store/list';
import type { Owner, ServiceDeps } from '../deps';
import {
  type ListPage,
  type ListQuery,
  type PageRequest,
  readPage,
  singleRow,
  toBounds,
} from '../paging';
import { listPage, type Page, type PageQuery } from '../read';
import { listDeliveries } from './present';
import { findEvent } from './redeliver';

export type { DeliveryDocument, DeliveryRow } from '../../store/deliveries';
export type { EventDocument } from '../../store/events';

type ReadDeps = Pick<ServiceDeps, 'stores'>;

/** Searches for the id of an event or of its resource. */
export async function listEvents({ stores }: ReadDeps, owner: Owner, query: ListQuery) {
  const { search, status, method } = query;
  if (search.startsWith('evt_')) {
    return await withDeliveries(stores, singleRow(await findOwnEvent({ stores }, owner, search)));
  }
  const filter = {
    ...owner,
    resource_id: search === '' ? undefined : search,
    type: EVENT_TYPES.find((type) => type === method),
    ...toBounds(query),
  };
  const statuses = DELIVERY_STATUSES.filter((one) => one === status);
  const list = (page: PageRequest) =>
    status === undefined
      ? stores.events.list({ ...filter, ...page })
      : listByStatus(stores, { ...filter, ...page, statuses });
  return await withDeliveries(stores, await readPage(query, list));
}

/** The oldest endpoint's delivery comes first. */
export interface ListedEvent {
  event: EventDocument;
  deliveries: DeliveryRow[];
}

async function withDeliveries(
  { deliveries }: Pick<ServiceDeps['stores'], 'deliveries'>,
  { rows, ...page }: ListPage<EventDocument>,
): Promise<ListPage<ListedEvent>> {
  const separate = await deliveries.listSeparate(rows.map(({ _id }) => _id));
  const listed = rows.map((event) => ({ event, deliveries: listDeliveries(event, separate) }));
  return { ...page, rows: listed };
}

type StatusFilter = ListFilter & { statuses: readonly DeliveryStatus[] };

/** Newest first. */
async function listByStatus(
  { events, deliveries }: Pick<ServiceDeps['stores'], 'events' | 'deliveries'>,
  filter: StatusFilter,
): Promise<EventDocument[]> {
  const [own, separate] = await Promise.all([events.list(filter), deliveries.listByStatus(filter)]);
  const known = new Set(own.map(({ _id }) => _id));
  const ids = separate.map(getEventId).filter((id) => !known.has(id));
  const rows = [...own, ...(await events.getAll([...new Set(ids)]))];
  const newestFirst = rows.sort((a, b) => (a.position > b.position ? -1 : 1));
  const { after, limit } = filter;
  return after === undefined ? newestFirst.slice(0, limit) : newestFirst.slice(-limit);
}

/** Newest first; `created_before` is the `next_cursor` of the page before. */
export function listEventsBefore(
  { stores }: ReadDeps,
  { resource_id, ...owner }: Owner & { resource_id: string | undefined },
  page: PageQuery,
): Promise<Page<EventDocument>> {
  return listPage(stores.events, owner, page, { resource_id });
}

/** Attempts are oldest first. @throws ServiceError `event_not_found` */
export async function readEventHistory({ stores }: ReadDeps, id: string) {
  const event = await findEvent(stores, id);
  const separate = await stores.deliveries.listSeparate([id]);
  const attempts = (await stores.deliveries.forEvent(id)).reverse();
  return { event, deliveries: listDeliveries(event, separate), attempts };
}

/** Attempts are newest first. */
export async function readEvent({ stores }: ReadDeps, owner: Owner, id: string) {
  const event = await findOwnEvent({ stores }, owner, id);
  if (event === null) return null;
  const separate = await stores.deliveries.listSeparate([id]);
  const attempts = await stores.deliveries.forEvent(id);
  return { event, deliveries: listDeliveries(event, separate), attempts };
}

export async function findOwnEvent(
  { stores }: { stores: Pick<ServiceDeps['stores'], 'events'> },
  { account_id, livemode }: Owner,
  id: string,
): Promise<EventDocument | null> {
  const event = await stores.events.get(id);
  return event?.account_id === account_id && event.livemode === livemode ? event : null;
}
