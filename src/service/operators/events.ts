import type { DeliveryDocument } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';
import type { Owner } from '../deps';
import { findEvent } from '../events/redeliver';
import { type FirstRows, toFirstRows } from '../paging';
import type { ReadDeps } from './deps';

export type { EventDocument } from '../../store/events';

interface EventQuery extends Owner {
  resource_id: string | undefined;
  /** Value of `next_cursor` of the page before. */
  before?: string | undefined;
  limit: number;
}

export async function listEventsBefore(
  { stores }: Pick<ReadDeps, 'stores'>,
  query: EventQuery,
): Promise<FirstRows<EventDocument> & { next_cursor: string | null }> {
  const { limit } = query;
  const page = toFirstRows(await stores.events.list({ ...query, limit: limit + 1 }), limit);
  return { ...page, next_cursor: page.has_more ? (page.rows.at(-1)?.position ?? null) : null };
}

/** Reads an event with its attempts, the oldest first. @throws ServiceError `event_not_found` */
export async function readEventHistory(
  { stores }: Pick<ReadDeps, 'stores'>,
  id: string,
): Promise<{ event: EventDocument; attempts: DeliveryDocument[] }> {
  const event = await findEvent(stores, id);
  return { event, attempts: (await stores.deliveries.forEvent(id)).reverse() };
}
