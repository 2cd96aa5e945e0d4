import type { Collection, Filter } from 'mongodb';
import type { NamedIndex } from '../base/mongo-indexes';
import { buildPosition } from '../domain/cursor';
import type { DeliveryStatus } from '../domain/webhook/event';
import type { EndpointKey } from './endpoint-document';
import type {
  DeliveryDocument,
  DeliveryRow,
  EventDelivery,
  EventDocument,
  ResendFilter,
} from './event-document';
import { LIST_MS_MAX } from './list';
import { OWNER } from './resource-indexes';

const ROWS_MAX = 200;
const BATCH = 200;
/** Time from the first attempt of an event to its last. */
const ATTEMPTS_MS = 86_400_000;

type StoredAttempt = Omit<DeliveryDocument, 'event_id' | 'delivery_id'>;

export interface StoredDelivery extends DeliveryRow {
  /** Latest, in the order of their writes. */
  attempts?: StoredAttempt[];
}

export const PENDING = { 'delivery.status': 'pending' } as const;
export const NEXT_ATTEMPT_AT = 'delivery.next_attempt_at';
export const WAITING_FOR = 'delivery.waiting_for';
export const NOT_WAITING = { $unset: { [WAITING_FOR]: '' } } as const;

/** Few, unless an endpoint is down. */
const UNDELIVERED = { 'delivery.status': { $in: ['pending', 'exhausted'] } };

/** @param tie further field of an index whose positions are not unique */
export function deliveryIndexes(tie: Record<string, 1> = {}): NamedIndex[] {
  return [
    { key: { [NEXT_ATTEMPT_AT]: 1 }, name: 'pending', partialFilterExpression: PENDING },
    {
      key: { ...OWNER, position: 1, ...tie },
      name: 'undelivered_position',
      partialFilterExpression: UNDELIVERED,
    },
    {
      key: { [WAITING_FOR]: 1, position: 1, ...tie },
      name: 'waiting_for',
      partialFilterExpression: { [WAITING_FOR]: { $exists: true } },
    },
  ];
}

export function createDeliveryState(rows: Collection<StoredDelivery>) {
  return {
    /** Stores an attempt once, counts it and sets the delivery's state, in one write. */
    addAttempt: (row: DeliveryDocument) => addAttempt(rows, row),
    addOnlyAttempt: async ({ event_id, delivery_id, ...attempt }: DeliveryDocument) => {
      const { run, outcome } = attempt;
      const status: DeliveryStatus = outcome === 'delivered' ? outcome : 'exhausted';
      await rows.updateOne(
        { _id: delivery_id ?? event_id, 'delivery.attempts': 0 },
        {
          $set: {
            attempts: [attempt],
            'delivery.status': status,
            'delivery.attempts': 1,
            'delivery.next_attempt_at': null,
            'delivery.run': run,
          },
        },
      );
    },
    /** Reads the attempts of one delivery in the order of their writes. */
    readAttempts: async (filter: Filter<StoredDelivery>): Promise<DeliveryDocument[]> =>
      (await rows.find(filter, { projection: { attempts: 1, event_id: 1 } }).toArray()).flatMap(
        ({ _id, event_id, attempts = [] }) =>
          attempts.map((attempt) => ({
            ...(event_id === undefined ? { event_id: _id } : { event_id, delivery_id: _id }),
            ...attempt,
          })),
      ),
    hasSuccess: async (
      { account_id, livemode, endpoint_id }: Required<EndpointKey>,
      since: string,
    ): Promise<boolean> => {
      const row = await rows.findOne(
        {
          ...{ account_id, livemode, 'delivery.endpoint_id': endpoint_id },
          position: { $gte: buildPosition(Date.parse(since) - ATTEMPTS_MS, 0) },
          attempts: { $elemMatch: { outcome: 'delivered', at: { $gte: since } } },
        },
        { projection: { _id: 1 }, maxTimeMS: LIST_MS_MAX },
      );
      return row !== null;
    },
    pending: (resource_id: string, account_id: string, livemode: boolean) =>
      rows
        .find({ account_id, livemode, resource_id, ...PENDING })
        .sort({ position: 1 })
        .limit(100)
        .toArray(),
    listPending: (account_id: string, limit: number) =>
      rows
        .find({ account_id, livemode: false, ...PENDING })
        .sort({ position: 1 })
        .limit(limit)
        .project<Pick<EventDocument, '_id' | 'delivery'>>({ delivery: 1 })
        .toArray(),
    /** @param from the first of them; null includes those without a time */
    overdue: (before: string, from: string | null = null) =>
      rows
        .find({
          ...PENDING,
          [NEXT_ATTEMPT_AT]:
            from === null ? { $not: { $gte: before } } : { $gte: from, $lt: before },
        })
        .sort({ [NEXT_ATTEMPT_AT]: 1 })
        .batchSize(BATCH),
    countPending: (limit: number): Promise<number> =>
      rows.countDocuments({ ...PENDING }, { hint: 'pending', limit }),
    firstDue: (before: string) =>
      rows.findOne(
        { ...PENDING, [NEXT_ATTEMPT_AT]: { $lt: before } },
        { sort: { [NEXT_ATTEMPT_AT]: 1 }, projection: { delivery: 1 } },
      ),
    listResendable: (filter: ResendFilter, limit: number, tie: Record<string, 1> = {}) =>
      rows
        .find(buildResendQuery(filter))
        .sort({ position: 1, ...tie })
        .limit(limit)
        .toArray(),
    countResendable: (filter: ResendFilter): Promise<number> =>
      rows.countDocuments(buildResendQuery(filter)),
    /**
     * Reserves the next run number; null when another redelivery was first.
     * @param endpoint_id sets the endpoint of an event that had none
     */
    reserveRun: (id: string, run: number, now: string, endpoint_id?: string) =>
      rows.findOneAndUpdate(
        { _id: id, 'delivery.run': run },
        {
          $set: {
            'delivery.status': 'pending',
            'delivery.next_attempt_at': now,
            'delivery.run': run + 1,
            ...(endpoint_id === undefined ? {} : { 'delivery.endpoint_id': endpoint_id }),
          },
          ...NOT_WAITING,
        },
        { returnDocument: 'after' },
      ),
    /** Restores the state unless an attempt has changed it; the run number stays used. */
    releaseRun: (id: string, current: EventDelivery, before: EventDelivery) =>
      rows.updateOne(
        { _id: id, delivery: current },
        { $set: { delivery: { ...before, run: current.run } } },
      ),
    /**
     * @param run a report of an earlier run changes only a pending delivery
     * @returns null when nothing was written
     */
    setDelivery: (id: string, delivery: Partial<EventDelivery>, run?: number) =>
      rows.findOneAndUpdate(
        run === undefined
          ? { _id: id }
          : { _id: id, $or: [{ 'delivery.run': { $lte: run } }, PENDING] },
        {
          $set: Object.fromEntries(
            Object.entries(delivery).map(([name, value]) => [`delivery.${name}`, value]),
          ),
          ...NOT_WAITING,
        },
        { returnDocument: 'after' },
      ),
  };
}

async function addAttempt(
  rows: Collection<StoredDelivery>,
  { event_id, delivery_id, ...attempt }: DeliveryDocument,
): Promise<'kept' | 'known' | 'no_event'> {
  const _id = delivery_id ?? event_id;
  const { run, outcome, next_attempt_at } = attempt;
  const status: DeliveryStatus = outcome === 'delivered' ? 'delivered' : 'pending';
  // After a redelivery, the late report of an earlier run changes only the count.
  const countsForStatus = {
    $or: [{ $lte: ['$delivery.run', run] }, { $eq: ['$delivery.status', 'pending'] }],
  };
  const chooseValue = (value: string | null, field: string) => ({
    $cond: [countsForStatus, { $literal: value }, field],
  });
  const { matchedCount } = await rows.updateOne(
    { _id, attempts: { $not: { $elemMatch: { run, attempt: attempt.attempt } } } },
    [
      {
        $set: {
          attempts: {
            $slice: [
              { $concatArrays: [{ $ifNull: ['$attempts', []] }, [{ $literal: attempt }]] },
              -ROWS_MAX,
            ],
          },
          'delivery.attempts': { $add: ['$delivery.attempts', 1] },
          'delivery.status': chooseValue(status, '$delivery.status'),
          'delivery.next_attempt_at': chooseValue(next_attempt_at, '$delivery.next_attempt_at'),
          [WAITING_FOR]: '$$REMOVE',
        },
      },
    ],
  );
  if (matchedCount === 1) return 'kept';
  return (await rows.countDocuments({ _id }, { limit: 1 })) === 1 ? 'known' : 'no_event';
}

/** Excludes deliveries that wait for their first attempt. */
function buildResendQuery(filter: ResendFilter) {
  const { account_id, livemode, since, until, statuses, types, endpoint_ids } = filter;
  return {
    account_id,
    livemode,
    position: { $gte: since, $lt: until },
    'delivery.status': { $in: statuses },
    'data.test': { $exists: false },
    $or: [{ 'delivery.status': { $ne: 'pending' as const } }, { 'delivery.attempts': { $gte: 1 } }],
    ...(types === undefined ? {} : { type: { $in: types } }),
    // Null also matches an absent field.
    ...(endpoint_ids === undefined
      ? {}
      : { 'delivery.endpoint_id': { $in: [...endpoint_ids, null] } }),
  };
}
