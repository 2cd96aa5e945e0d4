import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import { getDeliveryId } from '../domain/events/delivery';
import type { DeliveryStatus, EventType } from '../domain/events/event';
import { ENDPOINTS_MAX } from './endpoints';
import type { EventDocument } from './events';
import { deleteSome, type ListFilter, listNewest, OWNER } from './list';

/** The delivery of one event to one endpoint. */
export interface DeliveryRow {
  /** `{event_id}:{endpoint_id}` */
  _id: string;
  event_id: string;
  endpoint_id: string;
  account_id: string;
  livemode: boolean;
  type: EventType;
  resource_id: string;
  /** That of the event. */
  position: string;
  /** Present for a test event. */
  test?: true;
  status: DeliveryStatus;
  /** Over all runs. */
  attempts: number;
  next_attempt_at: string | null;
  run: number;
  /** The endpoint hangs: until it responds, `next_attempt_at` is the delivery's own probe. */
  waiting?: true;
  /** Latest attempts, in the order of their writes. */
  log?: StoredAttempt[];
}

export interface DeliveryAttempt {
  event_id: string;
  endpoint_id: string;
  /** 0, then one for each redelivery. */
  run: number;
  attempt: number;
  at: string;
  /** Account time of the run's first attempt, where the clock was moved. */
  first_at?: string;
  url: string;
  /** Null without a complete response. */
  status_code: number | null;
  error: string | null;
  duration_ms: number;
  response_excerpt: string;
  outcome: 'delivered' | 'failed';
  /** Null: no attempt follows. */
  next_attempt_at: string | null;
}

type StoredAttempt = Omit<DeliveryAttempt, 'event_id' | 'endpoint_id'>;

export interface ResendFilter {
  account_id: string;
  livemode: boolean;
  /** Inclusive position; `until` is exclusive. */
  since: string;
  until: string;
  statuses: readonly DeliveryStatus[];
  types?: readonly EventType[] | undefined;
  endpoint_ids?: readonly string[] | undefined;
}

export type ResendPlace = Pick<DeliveryRow, '_id' | 'position'>;

type DeliveryState = Pick<DeliveryRow, 'status' | 'next_attempt_at' | 'run'>;

const LOG_MAX = 200;
const PENDING_MAX = 100;
const BATCH = 200;
const PENDING = { status: 'pending' } as const;
/** Few, unless an endpoint is down. */
const UNDELIVERED = { status: { $in: ['pending', 'exhausted'] } };
const WAITING = { waiting: true } as const;
const NOT_WAITING = { $unset: { waiting: true } } as const;
const WITHOUT_LOG = { projection: { log: 0 } } as const;

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;

export function buildDelivery(
  event: EventDocument,
  endpoint_id: string,
  status: DeliveryStatus,
): DeliveryRow {
  const { _id: event_id, account_id, livemode, type, resource_id, position } = event;
  return {
    _id: getDeliveryId({ event_id, endpoint_id }),
    ...{ event_id, endpoint_id, account_id, livemode, type, resource_id, position },
    ...(event.data['test'] === true ? { test: true } : {}),
    status,
    attempts: 0,
    next_attempt_at: status === 'pending' ? event.created : null,
    run: 0,
  };
}

/** @see docs/webhooks.md#several-endpoints */
export function createDeliveryStore(db: Db) {
  const rows = db.collection<DeliveryRow>('deliveries');
  const events = db.collection<EventDocument>('events');
  return {
    ensureIndexes: indexBuilder(rows, [
      { key: { event_id: 1 }, name: 'event' },
      { key: { ...OWNER, position: -1 }, name: 'position' },
      { key: { resource_id: 1 }, name: 'pending_resource', partialFilterExpression: PENDING },
      { key: { next_attempt_at: 1 }, name: 'pending', partialFilterExpression: PENDING },
      {
        key: { ...OWNER, status: 1, position: 1, _id: 1 },
        name: 'undelivered_position',
        partialFilterExpression: UNDELIVERED,
      },
      {
        key: { endpoint_id: 1, position: 1 },
        name: 'waiting',
        partialFilterExpression: WAITING,
      },
    ]),
    insert: (deliveries: readonly DeliveryRow[], session?: ClientSession) =>
      rows.insertMany([...deliveries], { session }),
    /** @returns the stored row, which another may have added */
    addOnce: async (row: DeliveryRow): Promise<DeliveryRow> =>
      (await rows.findOneAndUpdate(
        { _id: row._id },
        { $setOnInsert: row },
        { upsert: true, returnDocument: 'after', ...WITHOUT_LOG },
      )) ?? row,
    get: (id: string) => rows.findOne({ _id: id }, WITHOUT_LOG),
    /** Lists rows without their logs, those of an event in the order of their writes. */
    forEvents: (event_ids: readonly string[]) =>
      rows.find({ event_id: { $in: [...event_ids] } }, WITHOUT_LOG).toArray(),
    /** Lists rows with their logs. */
    readLogs: (event_ids: readonly string[]) =>
      rows.find({ event_id: { $in: [...event_ids] } }).toArray(),
    /** Lists rows of at least `limit` events, if there are as many, the newest first. */
    listByStatus: (filter: ListFilter & { status: DeliveryStatus }) =>
      listNewest<DeliveryRow>(rows, { ...filter, limit: filter.limit * ENDPOINTS_MAX }),
    /**
     * Stores an attempt once, counts it and sets the delivery's state, in one write. After a
     * redelivery, the late report of an earlier run changes only a pending delivery.
     */
    addAttempt: async ({
      event_id,
      endpoint_id,
      ...attempt
    }: DeliveryAttempt): Promise<'kept' | 'known' | 'no_event'> => {
      const _id = getDeliveryId({ event_id, endpoint_id });
      const { run, outcome, next_attempt_at } = attempt;
      const failed = next_attempt_at === null ? 'exhausted' : 'pending';
      const status: DeliveryStatus = outcome === 'delivered' ? outcome : failed;
      const isCurrent = { $or: [{ $lte: ['$run', run] }, { $eq: ['$status', 'pending'] }] };
      const choose = (value: string | null, field: string) => ({
        $cond: [isCurrent, { $literal: value }, field],
      });
      const appended = { $concatArrays: [{ $ifNull: ['$log', []] }, [{ $literal: attempt }]] };
      const { matchedCount } = await rows.updateOne(
        { _id, log: { $not: { $elemMatch: { run, attempt: attempt.attempt } } } },
        [
          {
            $set: {
              log: { $slice: [appended, -LOG_MAX] },
              attempts: { $add: ['$attempts', 1] },
              status: choose(status, '$status'),
              next_attempt_at: choose(next_attempt_at, '$next_attempt_at'),
              waiting: '$$REMOVE',
            },
          },
        ],
      );
      if (matchedCount === 1) return 'kept';
      return (await rows.countDocuments({ _id }, { limit: 1 })) === 1 ? 'known' : 'no_event';
    },
    last: async (id: string, run: number): Promise<DeliveryAttempt | null> => {
      const row = await rows.findOne({ _id: id });
      return (row && listAttempts([row]).find((attempt) => attempt.run === run)) ?? null;
    },
    /** Ends a run, unless a later one has ended. */
    end: (id: string, run: number, status: DeliveryStatus) =>
      rows.updateOne(
        { _id: id, $or: [{ run: { $lte: run } }, PENDING] },
        { $set: { status, next_attempt_at: null }, ...NOT_WAITING },
      ),
    /** Reserves the next run number; null when another redelivery was first. */
    reserveRun: ({ _id, run }: DeliveryRow, now: string): Promise<DeliveryRow | null> =>
      rows.findOneAndUpdate(
        { _id, run },
        { $set: { ...PENDING, next_attempt_at: now, run: run + 1 }, ...NOT_WAITING },
        { returnDocument: 'after', ...WITHOUT_LOG },
      ),
    /** Restores the state unless an attempt has changed it; the run number stays used. */
    releaseRun: (
      { _id, run, attempts, ...reserved }: DeliveryRow,
      { status, next_attempt_at }: DeliveryState,
    ) =>
      rows.updateOne(
        { _id, run, attempts, status: reserved.status, next_attempt_at: reserved.next_attempt_at },
        { $set: { status, next_attempt_at } },
      ),
    /**
     * @param until latest end of the wait
     * @returns whether the delivery is pending
     */
    noteWaiting: async (id: string, until: string): Promise<boolean> => {
      const change = { $set: { ...WAITING, next_attempt_at: until } };
      return (await rows.updateOne({ _id: id, ...PENDING }, change)).matchedCount === 1;
    },
    /**
     * Ends the wait of the oldest delivery; each ends once.
     * @returns null when none waits
     */
    endWait: (endpoint_id: string, now: string) =>
      rows.findOneAndUpdate(
        { endpoint_id, ...WAITING, ...PENDING },
        { $set: { next_attempt_at: now }, ...NOT_WAITING },
        { sort: { position: 1 }, ...WITHOUT_LOG },
      ),
    pending: (resource_id: string, account_id: string, livemode: boolean) =>
      rows
        .find({ account_id, livemode, resource_id, ...PENDING }, WITHOUT_LOG)
        .limit(PENDING_MAX)
        .toArray(),
    listPending: (account_id: string, limit: number) =>
      rows
        .find({ account_id, livemode: false, ...PENDING }, WITHOUT_LOG)
        .sort({ position: 1 })
        .limit(limit)
        .toArray(),
    /** @param from time of the first of them; null includes those without a time */
    overdue: (before: string, from: string | null = null) =>
      rows
        .find(
          {
            ...PENDING,
            next_attempt_at:
              from === null ? { $not: { $gte: before } } : { $gte: from, $lt: before },
          },
          WITHOUT_LOG,
        )
        .sort({ next_attempt_at: 1 })
        .batchSize(BATCH),
    /** Lists those of an account whose sandbox clock was advanced. */
    overdueOf: ({
      account_id,
      from,
      before,
    }: {
      account_id: string;
      from: string;
      before: string;
    }) =>
      rows
        .find(
          { account_id, livemode: false, ...PENDING, next_attempt_at: { $gte: from, $lt: before } },
          WITHOUT_LOG,
        )
        .batchSize(BATCH),
    countPending: (limit: number): Promise<number> =>
      rows.countDocuments({ ...PENDING }, { hint: 'pending', limit }),
    firstDue: async (before: string): Promise<string | undefined> => {
      const due = { ...PENDING, next_attempt_at: { $lt: before } };
      const row = await rows.findOne(due, { sort: { next_attempt_at: 1 }, ...WITHOUT_LOG });
      return row?.next_attempt_at ?? undefined;
    },
    countResendable: (filter: ResendFilter): Promise<number> =>
      rows.countDocuments(buildResendQuery(filter)),
    /** Lists the oldest first. */
    listResendable: (
      filter: ResendFilter,
      limit: number,
      after?: ResendPlace,
    ): Promise<DeliveryRow[]> =>
      rows
        .find(buildResendQuery(filter, after), WITHOUT_LOG)
        .sort({ position: 1, _id: 1 })
        .limit(limit)
        .toArray(),
    /**
     * Deletes events last: one that has a pending delivery stays with it.
     * @returns how many were deleted
     */
    deleteOld: async (
      owner: Pick<DeliveryRow, 'account_id' | 'livemode'>,
      before: string,
      limit: number,
    ): Promise<number> => {
      const old = { ...owner, position: { $lt: before } };
      const ended = { ...old, status: { $ne: 'pending' } };
      const deletedCount = await deleteSome(rows, ended, limit);
      if (deletedCount > 0) return deletedCount;
      const needed = await rows.distinct('event_id', old);
      return await deleteSome(events, { ...old, _id: { $nin: needed } }, limit);
    },
  };
}

/** @returns the newest run and its newest attempt first */
export function listAttempts(deliveries: readonly DeliveryRow[]): DeliveryAttempt[] {
  return deliveries
    .flatMap(({ event_id, endpoint_id, log = [] }) =>
      log.map((attempt) => ({ event_id, endpoint_id, ...attempt })),
    )
    .sort((a, b) => b.run - a.run || b.attempt - a.attempt);
}

/** Excludes deliveries that wait for their first attempt. */
function buildResendQuery(filter: ResendFilter, after?: ResendPlace) {
  const { account_id, livemode, since, until, statuses, types, endpoint_ids } = filter;
  const isTried = {
    $or: [{ status: { $ne: 'pending' as const } }, { attempts: { $gte: 1 } }],
  };
  const isLater = after && {
    $or: [{ position: { $gt: after.position } }, { _id: { $gt: after._id } }],
  };
  return {
    account_id,
    livemode,
    position: { $gte: after?.position ?? since, $lt: until },
    status: { $in: statuses },
    test: { $exists: false },
    $and: isLater === undefined ? [isTried] : [isTried, isLater],
    ...(types === undefined ? {} : { type: { $in: types } }),
    ...(endpoint_ids === undefined ? {} : { endpoint_id: { $in: endpoint_ids } }),
  };
}
