import { inTransaction } from '../../base/mongo';
import { buildPosition } from '../../domain/cursor';
import { buildRefusal, notFound, ServiceError } from '../../domain/errors';
import { DELIVERY_STATUSES, type DeliveryStatus, EVENT_TYPES } from '../../domain/events/event';
import { toLowerId } from '../../domain/shape';
import type { EventsQuery } from '../../domain/wire/events';
import { type DeliveryRow, listAttempts } from '../../store/deliveries';
import type { EventDocument, EventFilter } from '../../store/events';
import type { Owner, ServiceDeps } from '../access';
import { listPage, type Page, type PageQuery } from '../money/read';
import {
  type ListPage,
  type ListQuery,
  type PageRequest,
  readPage,
  singleRow,
  toBounds,
  toPage,
} from '../paging';

export { type DeliveryAttempt, type DeliveryRow, listAttempts } from '../../store/deliveries';
export type { EventDocument } from '../../store/events';

type ReadDeps = Pick<ServiceDeps, 'stores'>;

/** Searches for the id of an event or of its resource. */
export async function listEvents(
  { stores }: ReadDeps,
  owner: Owner,
  query: ListQuery,
): Promise<ListPage<ListedEvent>> {
  const { status, method } = query;
  const search = toLowerId(query.search);
  const filter = {
    ...owner,
    resource_id: search === '' ? undefined : search,
    type: EVENT_TYPES.find((type) => type === method),
    ...toBounds(query),
  };
  const wanted = DELIVERY_STATUSES.find((one) => one === status);
  const list = (page: PageRequest) =>
    wanted === undefined
      ? stores.events.list({ ...filter, ...page })
      : listByStatus(stores, { ...filter, ...page }, wanted);
  const { rows, ...page } = search.startsWith('evt_')
    ? singleRow(await findOwnEvent({ stores }, owner, search))
    : await readPage(query, list);
  return { ...page, rows: await withDeliveries({ stores }, rows) };
}

/** @param read by default without the logs */
export async function withDeliveries(
  { stores }: { stores: Pick<ServiceDeps['stores'], 'deliveries'> },
  events: readonly EventDocument[],
  read: 'forEvents' | 'readLogs' = 'forEvents',
): Promise<ListedEvent[]> {
  const rows = await stores.deliveries[read](events.map(({ _id }) => _id));
  return events.map((event) => ({
    event,
    deliveries: rows.filter(({ event_id }) => event_id === event._id),
  }));
}

/** Newest first. */
async function listByStatus(
  { events, deliveries }: Pick<ServiceDeps['stores'], 'events' | 'deliveries'>,
  filter: EventFilter,
  status: DeliveryStatus,
): Promise<EventDocument[]> {
  if (status === 'no_endpoint') return await events.listWithoutEndpoint(filter);
  const rows = await deliveries.listByStatus({ ...filter, status });
  const ids = [...new Set(rows.map(({ event_id }) => event_id))];
  const { after, limit } = filter;
  const wanted = after === undefined ? ids.slice(0, limit) : ids.slice(-limit);
  const found = await events.getAll(wanted);
  return found.sort((a, b) => (a.position > b.position ? -1 : 1));
}

/** Newest first; `created_before` is the `next_cursor` of the page before. */
export async function listEventsBefore(
  { stores }: ReadDeps,
  { resource_id, ...owner }: Owner & { resource_id: string | undefined },
  query: PageQuery,
): Promise<Page<ListedEvent>> {
  const { rows, ...page } = await listPage(stores.events, owner, query, { resource_id });
  return { ...page, rows: await withDeliveries({ stores }, rows) };
}

/** @throws ServiceError `event_not_found` */
export async function findEvent({ events }: Pick<ServiceDeps['stores'], 'events'>, id: string) {
  const event = await events.get(id);
  if (event !== null) return event;
  throw new ServiceError('event_not_found', `There is no event ${id}.`);
}

/** @throws ServiceError `event_not_found` */
export async function readEventHistory({ stores }: ReadDeps, id: string): Promise<ListedEvent> {
  const event = await findEvent(stores, id);
  return { event, deliveries: await stores.deliveries.readLogs([id]) };
}

export async function readEvent(
  { stores }: ReadDeps,
  owner: Owner,
  id: string,
): Promise<ListedEvent | null> {
  const event = await findOwnEvent({ stores }, owner, id);
  return event && { event, deliveries: await stores.deliveries.readLogs([id]) };
}

export async function findOwnEvent(
  { stores }: { stores: Pick<ServiceDeps['stores'], 'events'> },
  { account_id, livemode }: Owner,
  id: string,
): Promise<EventDocument | null> {
  const event = await stores.events.get(id);
  return event?.account_id === account_id && event.livemode === livemode ? event : null;
}

/** An event with its deliveries, the oldest endpoint's first; none without endpoints. */
export interface ListedEvent {
  event: EventDocument;
  deliveries: readonly DeliveryRow[];
}

/** @see docs/api.md#events */
export function presentEvent({ event, deliveries }: ListedEvent) {
  const { _id: id, type, created, livemode, data } = event;
  const presented = deliveries.map(presentDelivery);
  return { id, object: 'event', type, created, livemode, data, deliveries: presented };
}

export function presentDelivery({ endpoint_id, status, attempts, next_attempt_at }: DeliveryRow) {
  return { endpoint_id, status, attempts, next_attempt_at };
}

const NO_DELIVERY = { status: 'no_endpoint', attempts: 0, next_attempt_at: null } as const;

export type ShownDelivery = Pick<DeliveryRow, 'status' | 'attempts' | 'next_attempt_at'>;

/** Shows operators the oldest endpoint's delivery. */
export function presentOldest([oldest = NO_DELIVERY]: readonly ShownDelivery[]): ShownDelivery {
  const { status, attempts, next_attempt_at } = oldest;
  return { status, attempts, next_attempt_at };
}

type MerchantEventDeps = Pick<ServiceDeps, 'mongo' | 'stores'>;

/** @throws Refusal 404 `event_not_found` */
export async function listMerchantEvents(
  deps: MerchantEventDeps,
  { account_id, livemode }: Owner,
  { after, ...query }: EventsQuery,
): Promise<Page<object>> {
  const owner = { account_id, livemode };
  const { events } = deps.stores;
  const { resource_id, ...newest } = query;
  const list: typeof events.list = (filter) =>
    resource_id === undefined ? events.list(filter) : events.listAbout(resource_id, filter);
  const page =
    after === undefined
      ? await listPage({ list }, owner, newest)
      : await listEventsAfter(deps, owner, { ...query, after });
  return { ...page, rows: (await withDeliveries(deps, page.rows)).map(presentEvent) };
}

/** @throws Refusal 404 `event_not_found` */
export async function getMerchantEvent(
  deps: Pick<MerchantEventDeps, 'stores'>,
  owner: Owner,
  id: string,
) {
  const listed = await readEvent(deps, owner, id);
  if (listed === null) throw buildRefusal(notFound('event'));
  const deliveries = listed.deliveries.map((row) => ({
    ...presentDelivery(row),
    log: listAttempts([row])
      .toReversed()
      .map(({ at, status_code: status, error, duration_ms }) => ({
        at,
        status,
        error,
        duration_ms,
      })),
  }));
  return { ...presentEvent(listed), deliveries };
}

/** MongoDB ends every transaction after a minute; clocks may differ. */
const SETTLED_MS = 120_000;
const WINDOW_MS = 60_000;
const NUMBERED_AT_ONCE = 5_000;

type CatchUpDeps = Pick<ServiceDeps, 'mongo' | 'stores'>;

/**
 * Lists events after one, oldest first. An event's time is the start of its transaction, not when
 * it became visible. Events that had settled before the first such request keep the order of their
 * times. Later ones follow numbers that visible events get here, in one transaction after the
 * other: an event that becomes visible later has a larger number than any returned. A start event
 * that no page has listed, but a webhook has shown, may have overtaken others: the page begins a
 * minute before it.
 * @throws Refusal 404 `event_not_found`
 * @see docs/api.md#catch-up
 */
async function listEventsAfter(
  { mongo, stores }: CatchUpDeps,
  { account_id, livemode }: Owner,
  query: Omit<EventsQuery, 'created_before'> & { after: string },
): Promise<Page<EventDocument>> {
  const { after, limit, type, resource_id: about } = query;
  const owner = { account_id, livemode };
  const { eventOrder } = stores;
  // Read first: an event without a number now gets a larger one.
  const counter = await eventOrder.begin(owner, buildPosition(Date.now() - SETTLED_MS, 0));
  const start = await findOwnEvent({ stores }, owner, after);
  if (start === null) throw buildRefusal(notFound('event'));
  const isListed = start.order !== 0;
  const since = isListed ? start.position : buildPosition(Date.parse(start.created) - WINDOW_MS, 0);
  const filter = { ...owner, counter, start, since, type, about };
  const found = await eventOrder.listSettled({ ...filter, limit: limit + 1 });
  if (found.length <= limit) {
    let isMore = await eventOrder.hasUnnumbered(owner, counter);
    while (isMore) {
      isMore = await inTransaction(mongo, (session) =>
        eventOrder.number(owner, counter, NUMBERED_AT_ONCE, session),
      );
    }
    found.push(...(await eventOrder.listNumbered({ ...filter, limit: limit + 1 - found.length })));
  }
  const page = toPage(found, limit, ({ _id }) => _id);
  await eventOrder.markListed(page.rows);
  return page;
}
