import type { Resource } from '../../lifecycles';
import type { Stores } from '../../store';
import type { CallbackDocument } from '../../store/callbacks';
import { assembleTimeline, type Entry, type Facts } from './assemble';

/** Events of one resource that are shown; it makes a handful of moves. */
const EVENTS_MAX = 100;

export type TimelineStores = Pick<
  Stores,
  'callbacks' | 'deliveries' | 'events' | 'idempotency' | 'ledger'
>;

/** Reads the whole timeline of a resource, the oldest first. */
export async function readTimeline(
  stores: TimelineStores,
  kind: Facts['kind'],
  resource: Resource,
): Promise<Entry[]> {
  const { _id, account_id, livemode, connector } = resource;
  const [claim, callbacks, postings, found] = await Promise.all([
    stores.idempotency.forResource(_id),
    stores.callbacks.forResource(_id),
    stores.ledger.forResource(_id),
    stores.events.list({ account_id, livemode, resource_id: _id, limit: EVENTS_MAX }),
  ]);
  const events = found.reverse();
  const attempts = await stores.deliveries.forEvents(events.map((event) => event._id));
  // A callback may name any resource: that of another connector or kind is not this one's, and a
  // refused one is nobody's word.
  const isOwn = (row: CallbackDocument) => row.connector === connector && row.resource === kind;
  const own = callbacks.filter((row) => isOwn(row) && row.refused !== true);
  return assembleTimeline({ kind, resource, claim, callbacks: own, events, attempts, postings });
}
