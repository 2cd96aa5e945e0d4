import type { ClientSession, Db, Filter, Sort } from 'mongodb';
import { omitUndefined } from '../domain/defined';
import type { EventType } from '../domain/webhook/event';
import { aboutId, type EventDocument } from './events';
import { LIST_MS_MAX } from './list';

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

/** Order in which events became visible. @see src/service/events/catch-up.ts */
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
