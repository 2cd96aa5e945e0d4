import { buildRefusal, notFound } from '../../domain/errors';
import type { EventsQuery } from '../../domain/wire/events';
import { listAttempts } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';
import type { Owner, ServiceDeps } from '../deps';
import { listPage, type Page } from '../money/read';
import { listEventsAfter } from './catch-up';
import { readEvent, withDeliveries } from './list';
import { presentDelivery, presentEvent, presentLog } from './present';

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
  return { ...page, rows: (await withDeliveries(deps, page.rows)).map(presentEvent) };
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
