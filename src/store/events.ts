import type { ClientSession, Db, Filter, Sort } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { omitUndefined } from '../domain/defined';
import type { EventType } from '../domain/events/event';
import { LIST_MS_MAX, type ListFilter, listIndexes, listNewest, listQuery, OWNER } from './list';

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
   * @see src/service/events/list.ts
   */
  order: number;
}

export interface EventFilter extends ListFilter {
  resource_id?: string | undefined;
  type?: EventType | undefined;
}

/** Events of refunds and disputes name their payment, too. */
const OF_REFUND = { 'data.refund_id': { $exists: true } };
const OF_DISPUTE = { 'data.dispute_id': { $exists: true } };

function aboutId(id: string) {
  const ofPayment = [OF_REFUND, OF_DISPUTE].map((own) => ({ 'data.payment_id': id, ...own }));
  return { $or: [{ resource_id: id }, ...ofPayment] };
}

export function createEventStore(db: Db) {
  const events = db.collection<EventDocument>('events');
  return {
    ensureIndexes: indexBuilder(events, [
      ...listIndexes('type'),
      { key: { ...OWNER, order: 1, position: 1 }, name: 'order' },
      { key: { ...OWNER, resource_id: 1, position: -1 }, name: 'resource_position' },
      // MongoDB takes a partial index for one branch of `$or` only by fields of that branch.
      {
        key: { 'data.payment_id': 1, position: -1 },
        name: 'payment_of_refund',
        partialFilterExpression: OF_REFUND,
      },
      {
        key: { 'data.payment_id': 1, position: -1 },
        name: 'payment_of_dispute',
        partialFilterExpression: OF_DISPUTE,
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

interface Owner {
  account_id: string;
  livemode: boolean;
}

/** Counter of each environment of an account that has had a reader. */
export interface EventCounter {
  /** `{account_id} live`, or `… sandbox`. */
  _id: string;
  /** Largest number given. */
  number: number;
  /** Position: earlier events were all visible, and get no number. */
  from: string;
}

interface AfterFilter extends Owner {
  counter: EventCounter;
  start: EventDocument;
  /** Exclusive position. */
  since: string;
  type?: EventType | undefined;
  about?: string | undefined;
  limit: number;
}

/** Order in which events became visible. @see src/service/events/list.ts */
export function createEventOrderStore(db: Db) {
  const events = db.collection<EventDocument>('events');
  const counters = db.collection<EventCounter>('event_orders');
  const list = (
    { account_id, livemode, start, type, about, limit }: AfterFilter,
    place: Filter<EventDocument>,
    sort: Sort,
  ): Promise<EventDocument[]> => {
    const own = { account_id, livemode, _id: { $ne: start._id } };
    const conditions = [place, ...(about === undefined ? [] : [aboutId(about)])];
    // A page that sees one number sees all of its events.
    const consistent = { readConcern: { level: 'snapshot' } } as const;
    return events
      .find({ ...own, $and: conditions, ...omitUndefined({ type }) }, consistent)
      .sort(sort)
      .limit(limit)
      .maxTimeMS(LIST_MS_MAX)
      .toArray();
  };
  return {
    /** @param from used by the environment's first reader */
    begin: async ({ account_id, livemode }: Owner, from: string): Promise<EventCounter> => {
      const _id = `${account_id} ${livemode ? 'live' : 'sandbox'}`;
      const first = { number: 0, from };
      const options = { upsert: true, returnDocument: 'after' } as const;
      const counter = await counters.findOneAndUpdate({ _id }, { $setOnInsert: first }, options);
      return counter ?? { _id, ...first };
    },
    hasUnnumbered: async (owner: Owner, counter: EventCounter): Promise<boolean> =>
      (await events.findOne(unnumbered(owner, counter), { projection: { _id: 1 } })) !== null,
    /**
     * Gives the oldest `count` the next number. Transactions of one environment conflict on its
     * counter, so that no number becomes visible before a smaller one.
     * @returns whether more may be left
     */
    number: async (
      owner: Owner,
      counter: EventCounter,
      count: number,
      session: ClientSession,
    ): Promise<boolean> => {
      const which = unnumbered(owner, counter);
      const first = await events.findOne(which, { session });
      if (first === null) return false;
      const { _id } = counter;
      const next = await counters.findOneAndUpdate(
        { _id },
        { $inc: { number: 1 } },
        { returnDocument: 'after', session },
      );
      if (next === null) throw new Error('The counter was not stored.');
      const [rest] = await events
        .find(which, { session, projection: { position: 1 } })
        .sort({ position: 1 })
        .skip(count)
        .limit(1)
        .toArray();
      const until =
        rest === undefined ? {} : { position: { $gte: counter.from, $lt: rest.position } };
      await events.updateMany(
        { ...which, ...until },
        { $set: { order: next.number } },
        { session },
      );
      return rest !== undefined;
    },
    /** Lists events without a number. */
    listSettled: (filter: AfterFilter) => {
      const position = { $gt: filter.since, $lt: filter.counter.from };
      return list(filter, { order: { $lte: 0 }, position }, { position: 1 });
    },
    listNumbered: (filter: AfterFilter) => {
      const { start, since, counter } = filter;
      const { order, position } = start;
      const before = position < counter.from ? 0 : counter.number;
      const place: Filter<EventDocument> =
        order > 0
          ? { $or: [{ order, position: { $gt: position } }, { order: { $gt: order } }] }
          : { order: { $gt: before }, position: { $gt: since } };
      return list(filter, place, { order: 1, position: 1 });
    },
    /** A later page then begins after exactly one of them. */
    markListed: (listed: readonly EventDocument[]) =>
      events.updateMany(
        { _id: { $in: listed.map(({ _id }) => _id) }, order: 0 },
        { $set: { order: -1 } },
      ),
  };
}

function unnumbered({ account_id, livemode }: Owner, { from }: EventCounter) {
  return { account_id, livemode, order: 0, position: { $gte: from } };
}
