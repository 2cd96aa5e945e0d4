import { buildRefusal, notFound } from '../../domain/errors';
import type { EventsQuery } from '../../domain/wire/events';
import type { EventDocument } from '../../store/events';
import type { Owner, ServiceDeps } from '../deps';
import { listPage, type Page } from '../read';
import { listEventsAfter } from './catch-up';
import { findOwnEvent } from './list';
import { listDeliveries, matchesRow, presentDelivery, presentEvent, presentLog } from './present';

type MerchantEventDeps = Pick<ServiceDeps, 'mongo' | 'stores'>;

/** @throws Refusal 404 `event_not_found` */
export async function listMerchantEvents(
  deps: MerchantEventDeps,
  { account_id, livemode }: Owner,
  { after, ...query }: EventsQuery,
): Promise<Page<object>> {
  const owner = { account_id, livemode };
  const page =
    after === undefined
      ? await listNewest(deps, owner, query)
      : await listEventsAfter(deps, owner, { ...query, after });
  const separate = await deps.stores.deliveries.listSeparate(page.rows.map(({ _id }) => _id));
  return { ...page, rows: page.rows.map((event) => presentEvent(event, separate)) };
}

function listNewest(
  { stores: { events } }: Pick<MerchantEventDeps, 'stores'>,
  owner: Owner,
  { resource_id, ...query }: Omit<EventsQuery, 'after'>,
): Promise<Page<EventDocument>> {
  if (resource_id === undefined) return listPage(events, owner, query);
  return listPage({ list: (filter) => events.listAbout(resource_id, filter) }, owner, query);
}

/** @throws Refusal 404 `event_not_found` */
export async function getMerchantEvent(
  { stores }: Pick<MerchantEventDeps, 'stores'>,
  owner: Owner,
  id: string,
) {
  const event = await findOwnEvent({ stores }, owner, id);
  if (event === null) throw buildRefusal(notFound('event'));
  const [attempts, separate] = await Promise.all([
    stores.deliveries.forEvent(id),
    stores.deliveries.listSeparate([id]),
  ]);
  const deliveries = listDeliveries(event, separate).map((row) => ({
    ...presentDelivery(row),
    log: presentLog(attempts.filter((attempt) => matchesRow(row, attempt))),
  }));
  return { ...presentEvent(event, separate), deliveries };
}
