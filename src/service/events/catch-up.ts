import type { MongoClient } from 'mongodb';
import { inTransaction } from '../../base/mongo';
import { buildPosition } from '../../domain/cursor';
import { buildRefusal, notFound } from '../../domain/errors';
import type { EventsQuery } from '../../domain/wire/events';
import type { Stores } from '../../store';
import type { Unordered } from '../../store/event-order';
import type { EventDocument } from '../../store/events';
import type { Owner, ServiceDeps } from '../deps';
import { toFirstRows } from '../paging';
import type { Page } from '../read';
import { findOwnEvent } from './list';

/** MongoDB ends every transaction after a minute. */
const LONGEST_TRANSACTION_MS = 60_000;
const ORDERED_AT_ONCE = 5_000;

type CatchUpDeps = Pick<ServiceDeps, 'mongo' | 'stores'>;

/**
 * Lists events after one, oldest first. An event's time is the start of its transaction, not when
 * it became visible, so pages follow numbers that visible events get here, in one transaction after
 * the other: an event that becomes visible later has a larger number than any returned. A start
 * event without a number, which a webhook has shown, may have overtaken others: it gets its number
 * before the events of the previous minute.
 * @throws Refusal 404 `event_not_found`
 * @see docs/api.md#events
 */
export async function listEventsAfter(
  { mongo, stores }: CatchUpDeps,
  { account_id, livemode }: Owner,
  query: Omit<EventsQuery, 'created_before'> & { after: string },
): Promise<Page<EventDocument>> {
  const { after, limit, type, resource_id: about } = query;
  const owner = { account_id, livemode };
  const start = await requireEvent(stores, owner, after);
  if (start.order === 0) {
    const windowFrom = Date.parse(start.created) - LONGEST_TRANSACTION_MS;
    await orderAll(mongo, stores, owner, { before: buildPosition(windowFrom, 0) });
    await orderAll(mongo, stores, owner, { _id: after });
  }
  await orderAll(mongo, stores, owner, {});
  const place = start.order === 0 ? await requireEvent(stores, owner, after) : start;
  const filter = { ...owner, after: place, type, about };
  const found = await stores.eventOrder.listAfter({ ...filter, limit: limit + 1 });
  const { rows, has_more } = toFirstRows(found, limit);
  return { rows, has_more, next_cursor: has_more ? (rows.at(-1)?._id ?? null) : null };
}

async function orderAll(
  mongo: MongoClient,
  { eventOrder }: Pick<Stores, 'eventOrder'>,
  owner: Owner,
  which: Unordered,
): Promise<void> {
  let isMore = await eventOrder.hasUnordered(owner, which);
  while (isMore) {
    isMore = await inTransaction(mongo, (session) =>
      eventOrder.order(owner, which, ORDERED_AT_ONCE, session),
    );
  }
}

async function requireEvent(
  stores: Pick<Stores, 'events'>,
  owner: Owner,
  id: string,
): Promise<EventDocument> {
  const event = await findOwnEvent({ stores }, owner, id);
  if (event === null) throw buildRefusal(notFound('event'));
  return event;
}
