import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { EventType } from '../domain/webhook/event';
import { LIST_MS_MAX, type ListFilter, listNewest, listQuery } from './list';
import { listIndexes, OWNER } from './resource-indexes';

/** Written in the transaction of its transition, with its deliveries. */
export interface EventDocument {
  /** `evt_…`, derived from the resource and its version. */
  _id: string;
  account_id: string;
  livemode: boolean;
  type: EventType;
  created: string;
  resource_id: string;
  /** @see src/domain/cursor.ts */
  position: string;
  /** Ids of the resource; `test` in a test event. */
  data: Record<string, string | true>;
  /** Sent by every attempt, byte for byte. */
  body: string;
  request_id: string;
  /**
   * Place for `after`: its number, or 0 without one, or −1 where a page has listed it by its time.
   * @see src/service/events/catch-up.ts
   */
  order: number;
}

export interface EventFilter extends ListFilter {
  resource_id?: string | undefined;
  type?: EventType | undefined;
}

/** Events of refunds name their payment, too. */
const OF_REFUND = { 'data.refund_id': { $exists: true } };

export function aboutId(id: string) {
  return { $or: [{ resource_id: id }, { 'data.payment_id': id, ...OF_REFUND }] };
}

export function createEventStore(db: Db) {
  const events = db.collection<EventDocument>('events');
  return {
    ensureIndexes: indexBuilder(events, [
      ...listIndexes('type'),
      { key: { ...OWNER, order: 1, position: 1 }, name: 'order' },
      { key: { ...OWNER, resource_id: 1, position: -1 }, name: 'resource_position' },
      {
        key: { ...OWNER, 'data.payment_id': 1, position: -1 },
        name: 'refunded_payment_position',
        partialFilterExpression: OF_REFUND,
      },
    ]),
    insert: (documents: readonly EventDocument[], session?: ClientSession) =>
      events.insertMany([...documents], { session }),
    get: (id: string): Promise<EventDocument | null> => events.findOne({ _id: id }),
    getAll: (ids: readonly string[]): Promise<EventDocument[]> =>
      events.find({ _id: { $in: [...ids] } }).toArray(),
    listAbout: (id: string, filter: EventFilter) =>
      listNewest<EventDocument>(events, { ...filter, ...aboutId(id) }),
    list: (filter: EventFilter) => listNewest<EventDocument>(events, filter),
    /** Lists events that have no endpoint, or one that was deleted, the newest first. */
    listWithoutEndpoint: async ({ limit, ...filter }: EventFilter): Promise<EventDocument[]> => {
      const isForward = filter.after !== undefined;
      const page = await events
        .aggregate<EventDocument>(
          [
            { $match: listQuery(filter) },
            { $sort: { position: isForward ? 1 : -1 } },
            {
              $lookup: {
                from: 'deliveries',
                localField: '_id',
                foreignField: 'event_id',
                pipeline: [{ $project: { _id: 0, status: 1 } }],
                as: 'deliveries',
              },
            },
            {
              $match: {
                $or: [{ deliveries: { $size: 0 } }, { 'deliveries.status': 'no_endpoint' }],
              },
            },
            { $limit: limit },
            { $unset: 'deliveries' },
          ],
          { maxTimeMS: LIST_MS_MAX },
        )
        .toArray();
      return isForward ? page.reverse() : page;
    },
    countSince: (account_id: string, livemode: boolean, since: string): Promise<number> =>
      events.countDocuments(
        { account_id, livemode, position: { $gte: since } },
        { maxTimeMS: LIST_MS_MAX },
      ),
  };
}
