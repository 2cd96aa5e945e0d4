import type { ClientSession, Collection, Db } from 'mongodb';
import type { DeliveryStatus, EventType } from '../domain/event';
import { type ListFilter, listIndexes, listNewest, OWNER } from './resource';

/** Fact that a merchant is told, written in the transaction of its move. */
export interface EventDocument {
  /** `evt_…`, derived from the resource and its version. */
  _id: string;
  account_id: string;
  livemode: boolean;
  type: EventType;
  created: string;
  resource_id: string;
  /** Place in lists, newest first. @see src/domain/cursor.ts */
  position: string;
  data: Record<string, string>;
  /** Bytes that every attempt posts, unchanged. */
  body: string;
  request_id: string;
  delivery: EventDelivery;
}

export interface EventDelivery {
  status: DeliveryStatus;
  /** Attempts made, redeliveries included. */
  attempts: number;
  next_attempt_at: string | null;
  /** Redeliveries asked for. */
  run: number;
}

export interface EventFilter extends ListFilter {
  resource_id?: string | undefined;
}

const PENDING = { 'delivery.status': 'pending' } as const;
const NEXT_ATTEMPT_AT = 'delivery.next_attempt_at';
const BATCH = 200;

export type EventStore = ReturnType<typeof createEventStore>;

export function createEventStore(db: Db) {
  const events: Collection<EventDocument> = db.collection<EventDocument>('events');
  return {
    ensureIndexes: () =>
      events.createIndexes([
        ...listIndexes(),
        { key: { ...OWNER, resource_id: 1, position: -1 }, name: 'resource_position' },
        { key: { [NEXT_ATTEMPT_AT]: 1 }, name: 'pending', partialFilterExpression: PENDING },
      ]),
    insert: (documents: EventDocument[], session: ClientSession) =>
      events.insertMany(documents, { session }),
    get: (id: string) => events.findOne({ _id: id }),
    /** Events of one resource that still have to reach their endpoint. */
    pending: (resource_id: string, account_id: string, livemode: boolean) =>
      events
        .find({ account_id, livemode, resource_id, ...PENDING })
        .sort({ position: 1 })
        .limit(100)
        .toArray(),
    /** Reads those of every account whose next attempt was due before a time, or is not known. */
    overdue: (before: string) =>
      events
        .find({ ...PENDING, [NEXT_ATTEMPT_AT]: { $not: { $gte: before } } })
        .sort({ [NEXT_ATTEMPT_AT]: 1 })
        .batchSize(BATCH),
    list: (filter: EventFilter) => listNewest<EventDocument>(events, filter),
    /**
     * Reserves the next run number, before a redelivery starts; null when another one was first.
     */
    claimRun: (id: string, run: number, now: string) =>
      events.findOneAndUpdate(
        { _id: id, 'delivery.run': run },
        {
          $set: {
            'delivery.status': 'pending',
            'delivery.next_attempt_at': now,
            'delivery.run': run + 1,
          },
        },
        { returnDocument: 'after' },
      ),
    /** Puts the state back unless an attempt has changed it; the run number stays used. */
    giveBackRun: (id: string, taken: EventDelivery, before: EventDelivery) =>
      events.updateOne(
        { _id: id, delivery: taken },
        { $set: { delivery: { ...before, run: taken.run } } },
      ),
    /** Writes the state after an attempt. */
    setDelivery: (id: string, delivery: Partial<EventDelivery>) =>
      events.findOneAndUpdate(
        { _id: id },
        {
          $set: Object.fromEntries(
            Object.entries(delivery).map(([name, value]) => [`delivery.${name}`, value]),
          ),
        },
        { returnDocument: 'after' },
      ),
  };
}
