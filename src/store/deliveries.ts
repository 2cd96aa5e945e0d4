import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { DeliveryStatus } from '../domain/webhook/event';
import { createDeliveryState, deliveryIndexes, type StoredDelivery } from './delivery-state';
import { createDeliveryWaits } from './delivery-waits';
import type { EndpointKey } from './endpoint-document';
import { ENDPOINTS_MAX } from './endpoints';
import type {
  DeliveryDocument,
  DeliveryRow,
  EventDelivery,
  EventDocument,
  ResendFilter,
} from './event-document';
import { type ListFilter, listNewest } from './list';
import { deleteSome } from './old-rows';
import { OWNER } from './resource-indexes';

export { type DeliveryDocument, type DeliveryRow, getEventId } from './event-document';

/** Deliveries of one event that can share a position. */
const TIES_MAX = 100;
const TIE = { _id: 1 } as const;
const ENDED: { $ne: DeliveryStatus } = { $ne: 'pending' };

export type ResendPlace = Pick<DeliveryRow, '_id' | 'position'>;

export type DeliveryStore = ReturnType<typeof createDeliveryStore>;

export function copyEvent(
  event: EventDocument,
  delivery: EventDelivery & { endpoint_id: string },
): DeliveryRow {
  const { _id: event_id, account_id, livemode, type, created, resource_id } = event;
  const { position, data, body, request_id } = event;
  return {
    _id: deliveryId(event_id, delivery.endpoint_id),
    ...{ event_id, account_id, livemode, type, created, resource_id },
    ...{ position, data, body, request_id, delivery },
  };
}

export function deliveryId(event_id: string, endpoint_id: string): string {
  return `${event_id}:${endpoint_id}`;
}

/**
 * The oldest endpoint's delivery is in the event, all others in their own collection.
 * @see docs/webhooks.md#several-endpoints
 */
export function createDeliveryStore(db: Db) {
  const separateRows = db.collection<StoredDelivery>('event_deliveries');
  const eventRows = db.collection<StoredDelivery>('events');
  const events = createDeliveryState(eventRows);
  const separate = createDeliveryState(separateRows);
  const eventWaits = createDeliveryWaits(eventRows);
  const separateWaits = createDeliveryWaits(separateRows);
  const pick = (id: string) => (id.includes(':') ? separate : events);
  const readAll = async <T>(read: (place: typeof events) => Promise<T[]>): Promise<T[]> =>
    (await Promise.all([events, separate].map(read))).flat();
  const sum = async (count: (place: typeof events) => Promise<number>): Promise<number> =>
    (await Promise.all([events, separate].map(count))).reduce((total, each) => total + each, 0);
  return {
    ensureIndexes: indexBuilder(separateRows, [
      { key: { event_id: 1 }, name: 'event' },
      { key: { ...OWNER, position: -1 }, name: 'position' },
      { key: { ...OWNER, resource_id: 1, position: -1 }, name: 'resource_position' },
      ...deliveryIndexes(TIE),
    ]),
    insert: (rows: DeliveryRow[], session: ClientSession) =>
      separateRows.insertMany(rows, { session }),
    addRow: async (row: DeliveryRow): Promise<void> => {
      await separateRows.updateOne({ _id: row._id }, { $setOnInsert: row }, { upsert: true });
    },
    get: (id: string) => separateRows.findOne({ _id: id }),
    /** Reads rows outside the events; those of one event in the order of their writes. */
    listSeparate: (event_ids: readonly string[]): Promise<DeliveryRow[]> =>
      separateRows.find({ event_id: { $in: [...event_ids] } }).toArray(),
    /** Lists rows outside the events, newest first. */
    /** Rows of at least `limit` events, if there are as many. */
    listByStatus: ({ statuses, ...filter }: ListFilter & { statuses: readonly DeliveryStatus[] }) =>
      listNewest<StoredDelivery>(separateRows, {
        ...filter,
        limit: filter.limit * ENDPOINTS_MAX,
        ...{ 'delivery.status': { $in: statuses } },
      }),
    addAttempt: (row: DeliveryDocument) => pick(row.delivery_id ?? row.event_id).addAttempt(row),
    addOnlyAttempt: events.addOnlyAttempt,
    /**
     * Deletes events last: one that a pending delivery of another endpoint needs stays with it.
     * @returns how many were deleted
     */
    deleteOld: async (
      owner: Pick<DeliveryRow, 'account_id' | 'livemode'>,
      before: string,
      limit: number,
    ): Promise<number> => {
      const old = { ...owner, position: { $lt: before } };
      const ended = { ...old, 'delivery.status': ENDED };
      const deleted = await deleteSome(separateRows, ended, limit);
      if (deleted > 0) return deleted;
      const needed = await separateRows.distinct('event_id', old);
      return await deleteSome(eventRows, { ...ended, _id: { $nin: needed } }, limit);
    },
    last: async (id: string, run: number): Promise<DeliveryDocument | null> => {
      const attempts = await pick(id).readAttempts({ _id: id });
      return attempts.filter((row) => row.run === run).sort(newestFirst)[0] ?? null;
    },
    hasSuccess: async (endpoint: Required<EndpointKey>, since: string): Promise<boolean> =>
      (await events.hasSuccess(endpoint, since)) || (await separate.hasSuccess(endpoint, since)),
    forEvents: async (ids: readonly string[]): Promise<DeliveryDocument[]> => {
      const rows = [
        events.readAttempts({ _id: { $in: [...ids] } }),
        separate.readAttempts({ event_id: { $in: [...ids] } }),
      ];
      return (await Promise.all(rows)).flat().sort((a, b) => (a.at < b.at ? -1 : 1));
    },
    forEvent: async (event_id: string): Promise<DeliveryDocument[]> => {
      const rows = [events.readAttempts({ _id: event_id }), separate.readAttempts({ event_id })];
      return (await Promise.all(rows)).flat().sort(newestFirst);
    },
    pending: (resource_id: string, account_id: string, livemode: boolean) =>
      readAll<DeliveryRow>((place) => place.pending(resource_id, account_id, livemode)),
    listPending: (account_id: string, limit: number) =>
      readAll((place) => place.listPending(account_id, limit)),
    overdue: async function* (before: string, from?: DeliveryPlace): AsyncGenerator<DeliveryRow> {
      if (from?.is_separate !== true) yield* events.overdue(before, from?.at);
      yield* separate.overdue(before, from?.is_separate === true ? from.at : null);
    },
    noteWaiting: (id: string, endpoint_id: string, until: string) =>
      (id.includes(':') ? separateWaits : eventWaits).noteWaiting(id, endpoint_id, until),
    /** @returns the delivery whose wait ended; null when none waits */
    endWait: async (endpoint_id: string, now: string): Promise<string | null> => {
      const row =
        (await eventWaits.endWait(endpoint_id, now)) ??
        (await separateWaits.endWait(endpoint_id, now));
      return row?._id ?? null;
    },
    countPending: (limit: number) => sum((place) => place.countPending(limit)),
    firstDue: async (before: string) => {
      const rows = await Promise.all([events, separate].map((place) => place.firstDue(before)));
      const due = rows.map((row) => row?.delivery.next_attempt_at).filter((at) => at != null);
      return due.sort()[0];
    },
    countResendable: (filter: ResendFilter) => sum((place) => place.countResendable(filter)),
    /** Lists the oldest first. */
    listResendable: async (
      filter: ResendFilter,
      limit: number,
      after?: ResendPlace,
    ): Promise<DeliveryRow[]> => {
      const since = after?.position ?? filter.since;
      const count = limit + (after === undefined ? 0 : TIES_MAX);
      const pages = await Promise.all([
        events.listResendable({ ...filter, since }, count),
        separate.listResendable({ ...filter, since }, count, TIE),
      ]);
      return pages
        .flat()
        .filter((row) => after === undefined || comparePlaces(row, after) > 0)
        .sort(comparePlaces)
        .slice(0, limit);
    },
    reserveRun: (row: DeliveryRow, now: string, endpoint_id: string): Promise<DeliveryRow | null> =>
      pick(row._id).reserveRun(row._id, row.delivery.run, now, endpoint_id),
    releaseRun: (id: string, current: EventDelivery, before: EventDelivery) =>
      pick(id).releaseRun(id, current, before),
    setDelivery: (id: string, delivery: Partial<EventDelivery>, run?: number) =>
      pick(id).setDelivery(id, delivery, run),
  };
}

export interface DeliveryPlace {
  is_separate: boolean;
  at: string | null;
}

export function getDeliveryPlace({ event_id, delivery }: DeliveryRow): DeliveryPlace {
  return { is_separate: event_id !== undefined, at: delivery.next_attempt_at };
}

function comparePlaces(a: ResendPlace, b: ResendPlace): number {
  const [first, second] = a.position === b.position ? [a._id, b._id] : [a.position, b.position];
  return first < second ? -1 : first > second ? 1 : 0;
}

function newestFirst(a: DeliveryDocument, b: DeliveryDocument): number {
  return b.run - a.run || b.attempt - a.attempt;
}
