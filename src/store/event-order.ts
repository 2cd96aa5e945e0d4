import type { ClientSession, Db, Filter } from 'mongodb';
import { omitUndefined } from '../domain/defined';
import type { EventType } from '../domain/webhook/event';
import { aboutId, type EventDocument } from './events';
import { LIST_MS_MAX } from './list';

interface Owner {
  account_id: string;
  livemode: boolean;
}

type Place = Pick<EventDocument, 'order' | 'position'>;

interface AfterFilter extends Owner {
  after: Place;
  type?: EventType | undefined;
  about?: string | undefined;
  limit: number;
}

export interface Unordered {
  _id?: string;
  /** Exclusive position. */
  before?: string;
}

interface Counter {
  _id: string;
  number: number;
}

/** Order in which events became visible. @see src/service/events/catch-up.ts */
export function createEventOrderStore(db: Db) {
  const events = db.collection<EventDocument>('events');
  const counters = db.collection<Counter>('event_orders');
  const buildQuery = (owner: Owner, { _id, before }: Unordered) => ({
    ...owner,
    order: 0,
    ...(_id === undefined ? {} : { _id }),
    ...(before === undefined ? {} : { position: { $lt: before } }),
  });
  return {
    hasUnordered: async (owner: Owner, which: Unordered = {}): Promise<boolean> =>
      (await events.findOne(buildQuery(owner, which), { projection: { _id: 1 } })) !== null,
    /**
     * Gives the oldest `count` the next number. Transactions of one environment conflict on its
     * counter, so that no number becomes visible before a smaller one.
     * @returns whether more may be left
     */
    order: async (
      { account_id, livemode }: Owner,
      which: Unordered,
      count: number,
      session: ClientSession,
    ): Promise<boolean> => {
      const owner = { account_id, livemode };
      const first = await events.findOne(buildQuery(owner, which), { session });
      if (first === null) return false;
      const counter = await counters.findOneAndUpdate(
        { _id: `${account_id} ${livemode ? 'live' : 'sandbox'}` },
        { $inc: { number: 1 } },
        { upsert: true, returnDocument: 'after', session },
      );
      if (counter === null) throw new Error('The counter was not stored.');
      const [next] = await events
        .find(buildQuery(owner, which), { session, projection: { position: 1 } })
        .sort({ position: 1 })
        .skip(count)
        .limit(1)
        .toArray();
      await events.updateMany(
        buildQuery(owner, next === undefined ? which : { ...which, before: next.position }),
        { $set: { order: counter.number } },
        { session },
      );
      return next !== undefined;
    },
    listAfter: ({ account_id, livemode, after, type, about, limit }: AfterFilter) => {
      const { order, position } = after;
      const conditions: Filter<EventDocument>[] = [
        {
          $or: [{ order, position: { $gt: position } }, { order: { $gt: order } }],
        },
        ...(about === undefined ? [] : [aboutId(about)]),
      ];
      // A page that sees one number sees all of its events.
      const consistent = { readConcern: { level: 'snapshot' } } as const;
      return events
        .find({ account_id, livemode, $and: conditions, ...omitUndefined({ type }) }, consistent)
        .sort({ order: 1, position: 1 })
        .limit(limit)
        .maxTimeMS(LIST_MS_MAX)
        .toArray();
    },
  };
}
