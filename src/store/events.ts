import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { DeliveryStatus, EventType } from '../domain/webhook/event';
import { LIST_MS_MAX, type ListFilter, listNewest } from './list';
import { listIndexes, OWNER } from './resource-indexes';

/** Event of a merchant, written in the transaction of its transition. */
export interface EventDocument {
  /** `evt_…`, derived from the resource and its version. */
  _id: string;
  account_id: string;
  livemode: boolean;
  type: EventType;
  created: string;
  resource_id: string;
  /** Position in lists, newest first. @see src/domain/cursor.ts */
  position: string;
  /** Ids of the resource; `test` marks a test event. */
  data: Record<string, string | true>;
  /** Body of every attempt, byte for byte. */
  body: string;
  request_id: string;
  /**
   * Place among the events of the environment for `after`: 0 until a reader gives it a number.
   * Absent in events from before. @see src/service/events/catch-up.ts
   */
  order?: number;
  delivery: EventDelivery;
}

export interface EventDelivery {
  status: DeliveryStatus;
  attempts: number;
  next_attempt_at: string | null;
  run: number;
  /** Endpoint that gets it; absent without one, and in events from before endpoints had ids. */
  endpoint_id?: string;
}

export interface EventFilter extends ListFilter {
  resource_id?: string | undefined;
  type?: EventType | undefined;
  statuses?: readonly DeliveryStatus[] | undefined;
}

export interface ResendFilter {
  account_id: string;
  livemode: boolean;
  /** Position of the first; `until` is the position after the last. */
  since: string;
  until: string;
  statuses: readonly DeliveryStatus[];
  types?: readonly EventType[] | undefined;
}

/** Events that may be sent again: few, unless an endpoint is down. */
const UNDELIVERED = { 'delivery.status': { $in: ['pending', 'exhausted'] } };
const PENDING = { 'delivery.status': 'pending' } as const;
const NEXT_ATTEMPT_AT = 'delivery.next_attempt_at';
const BATCH = 200;

/** Events of refunds name their payment, too. */
const OF_REFUND = { 'data.refund_id': { $exists: true } };

/** Selects the events that have an id in their data. */
export function aboutId(id: string) {
  return { $or: [{ resource_id: id }, { 'data.payment_id': id, ...OF_REFUND }] };
}

export type EventStore = ReturnType<typeof createEventStore>;

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
      { key: { [NEXT_ATTEMPT_AT]: 1 }, name: 'pending', partialFilterExpression: PENDING },
      {
        key: { ...OWNER, position: 1 },
        name: 'undelivered_position',
        partialFilterExpression: UNDELIVERED,
      },
    ]),
    insert: (documents: EventDocument[], session: ClientSession) =>
      events.insertMany(documents, { session }),
    get: (id: string) => events.findOne({ _id: id }),
    pending: (resource_id: string, account_id: string, livemode: boolean) =>
      events
        .find({ account_id, livemode, resource_id, ...PENDING })
        .sort({ position: 1 })
        .limit(100)
        .toArray(),
    /** Reads the undelivered events of a sandbox account. */
    listPending: (account_id: string, limit: number) =>
      events
        .find({ account_id, livemode: false, ...PENDING })
        .sort({ position: 1 })
        .limit(limit)
        .project<Pick<EventDocument, '_id' | 'delivery'>>({ delivery: 1 })
        .toArray(),
    overdue: (before: string) =>
      events
        .find({ ...PENDING, [NEXT_ATTEMPT_AT]: { $not: { $gte: before } } })
        .sort({ [NEXT_ATTEMPT_AT]: 1 })
        .batchSize(BATCH),
    /** Lists the events that have an id in their data, newest first. */
    listAbout: (id: string, filter: EventFilter) =>
      listNewest<EventDocument>(events, { ...filter, ...aboutId(id) }),
    list: ({ statuses, ...filter }: EventFilter) =>
      listNewest<EventDocument>(
        events,
        statuses === undefined
          ? filter
          : { ...filter, ...{ 'delivery.status': { $in: statuses } } },
      ),
    countSince: (account_id: string, livemode: boolean, since: string): Promise<number> =>
      events.countDocuments(
        { account_id, livemode, position: { $gte: since } },
        { maxTimeMS: LIST_MS_MAX },
      ),
    insertTest: (event: EventDocument) => events.insertOne(event),
    countPending: (limit: number): Promise<number> =>
      events.countDocuments({ ...PENDING }, { hint: 'pending', limit }),
    firstDue: (before: string) =>
      events.findOne(
        { ...PENDING, [NEXT_ATTEMPT_AT]: { $lt: before } },
        { sort: { [NEXT_ATTEMPT_AT]: 1 }, projection: { delivery: 1 } },
      ),
    listResendable: (filter: ResendFilter, limit: number) =>
      events.find(buildResendQuery(filter)).sort({ position: 1 }).limit(limit).toArray(),
    countResendable: (filter: ResendFilter): Promise<number> =>
      events.countDocuments(buildResendQuery(filter)),
    /** Reserves the next run number; null when another redelivery was first. */
    reserveRun: (id: string, run: number, now: string) =>
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
    /** Restores the state unless an attempt has changed it; the run number stays used. */
    releaseRun: (id: string, current: EventDelivery, before: EventDelivery) =>
      events.updateOne(
        { _id: id, delivery: current },
        { $set: { delivery: { ...before, run: current.run } } },
      ),
    /**
     * Writes the state after an attempt; null when nothing was written.
     * @param run a report of an earlier run changes only a pending delivery
     */
    setDelivery: (id: string, delivery: Partial<EventDelivery>, run?: number) =>
      events.findOneAndUpdate(
        run === undefined
          ? { _id: id }
          : { _id: id, $or: [{ 'delivery.run': { $lte: run } }, PENDING] },
        {
          $set: Object.fromEntries(
            Object.entries(delivery).map(([name, value]) => [`delivery.${name}`, value]),
          ),
        },
        { returnDocument: 'after' },
      ),
  };
}

/** Excludes events that wait for their first attempt. */
function buildResendQuery({ account_id, livemode, since, until, statuses, types }: ResendFilter) {
  return {
    account_id,
    livemode,
    position: { $gte: since, $lt: until },
    'delivery.status': { $in: statuses },
    'data.test': { $exists: false },
    $or: [{ 'delivery.status': { $ne: 'pending' as const } }, { 'delivery.attempts': { $gte: 1 } }],
    ...(types === undefined ? {} : { type: { $in: types } }),
  };
}
