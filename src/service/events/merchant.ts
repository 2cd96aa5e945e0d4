import { inTransaction } from '../../base/mongo';
import { buildPosition } from '../../domain/cursor';
import { buildRefusal, notFound } from '../../domain/errors';
import type { EventsQuery } from '../../domain/wire/events';
import { listAttempts } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';
import type { Owner, ServiceDeps } from '../deps';
import { listPage, type Page } from '../money/read';
import { toPage } from '../paging';

import {
  findOwnEvent,
  presentDelivery,
  presentEvent,
  presentLog,
  readEvent,
  withDeliveries,
} from './list';

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
    log: presentLog(listAttempts([row])),
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
