import type { AggregationCursor, ClientSession, UpdateResult } from 'mongodb';
import { omitUndefined } from '../domain/defined';
import type { Failure } from '../domain/failure';
import {
  type AcknowledgedReason,
  type AttentionUpdate,
  type AuditEntry,
  buildAttentionUpdate,
  type Snooze,
} from './attention';
import {
  afterRow,
  EXPORT_MS_MAX,
  LIST_MS_MAX,
  type Listable,
  type ListFilter,
  listNewest,
  listQuery,
  STUCK,
  toRange,
} from './list';

export interface ResourceDocument<
  Status extends string = string,
  Attention extends string = string,
> {
  _id: string;
  account_id: string;
  livemode: boolean;
  /** Number of the workflow's writes, each of which is conditional on it. */
  version: number;
  /** Number of transitions. */
  transition: number;
  /** Position in lists. @see src/domain/cursor.ts */
  position: string;
  status: Status;
  /** @see src/domain/cursor.ts */
  amount: number | string;
  /** Minor units; an asset's smallest as text. */
  currency: string;
  /** Payment method, rail, or asset on its network. */
  method: string;
  failure: Failure | null;
  created_at: string;
  updated_at: string;
  connector: string;
  bank_reference: string | null;
  attention: Attention | null;
  /** Latest change of the reason, ms since the epoch. */
  attention_at?: number;
  /** Start of the present reason, ms since the epoch. */
  attention_since?: number;
  /** Newest last. */
  acknowledged?: AcknowledgedReason<Attention>[];
  request_id: string;
  audit: AuditEntry[];
  applied_callbacks?: string[];
  snoozed?: Snooze;
  last_transition?: string;
}

export interface InFlightPage {
  /** Id; '' for the first page. */
  after: string;
  limit: number;
  /** Inclusive position. */
  since?: string | undefined;
}

interface Rows<D> extends Listable<D> {
  countDocuments(filter: object, options: { limit: number }): Promise<number>;
  aggregate<Row extends object>(
    pipeline: object[],
    options: { maxTimeMS: number },
  ): AggregationCursor<Row>;
  insertOne(document: D, options: { session: ClientSession }): Promise<unknown>;
  findOne(filter: object, options?: { session: ClientSession | undefined }): Promise<D | null>;
  findOneAndUpdate(
    filter: object,
    update: object,
    options: { session: ClientSession; returnDocument: 'after' },
  ): Promise<D | null>;
  updateOne(
    filter: object,
    update: object[],
    options?: { session: ClientSession | undefined },
  ): Promise<UpdateResult>;
}

export interface AttentionRow {
  resource_id: string;
  reason: string;
  /** ms since the epoch. */
  since: number;
  amount: number | string;
  currency: string;
  acknowledged: boolean;
  /** Refused file, of `bank_file_refused`, and the code of its refusal. */
  file_id?: string;
  name?: string;
  code?: string;
}

export type StoredVersion = Pick<ResourceDocument, '_id' | 'status' | 'version'>;

export type AttentionPlace = Pick<AttentionRow, 'since' | 'resource_id'>;

/** A resource has few transitions. */
const APPLIED_MAX = 50;

/** @returns the callback that the next one takes off the list */
export function findOldestApplied({
  applied_callbacks: applied = [],
}: Pick<ResourceDocument, 'applied_callbacks'>): string | undefined {
  return applied.length < APPLIED_MAX ? undefined : applied[0];
}

const EXPORT_BATCH = 500;

type FilterBy<Field extends string> = ListFilter & { [F in Field]?: string | undefined };

export function resourceStore<D extends ResourceDocument, Field extends string>(
  rows: Rows<D>,
  inFlight: readonly D['status'][],
) {
  const writeAttention = async (
    _id: string,
    update: AttentionUpdate,
    more: object[],
    session?: ClientSession,
  ): Promise<boolean> => {
    const { unlessDone, change } = buildAttentionUpdate(update);
    const filter = { _id, version: update.version, ...unlessDone };
    return (await rows.updateOne(filter, [...change, ...more], { session })).matchedCount === 1;
  };
  return {
    insert: (document: D, session: ClientSession) => rows.insertOne(document, { session }),
    /** Serves only the service's own steps, since it checks no owner. */
    get: (id: string, session?: ClientSession) => rows.findOne({ _id: id }, { session }),
    listStates: (ids: readonly string[]): Promise<StoredVersion[]> =>
      rows
        .find({ _id: { $in: [...ids] } })
        .project<StoredVersion>({ status: 1, version: 1 })
        .toArray(),
    find: (id: string, account_id: string, livemode: boolean) =>
      rows.findOne({ _id: id, account_id, livemode }),
    list: (filter: FilterBy<Field>) => listNewest(rows, filter),
    /** Reads newest first; the caller closes the cursor. */
    export: (filter: Omit<FilterBy<Field>, 'limit'>) =>
      rows
        .find(listQuery(filter))
        .sort({ position: -1 })
        .batchSize(EXPORT_BATCH)
        .maxTimeMS(EXPORT_MS_MAX),
    listNeedingAttention: (account_id: string, livemode: boolean, limit: number) =>
      rows
        .find({ account_id, livemode, ...STUCK })
        .sort({ position: -1 })
        .limit(limit)
        .maxTimeMS(LIST_MS_MAX)
        .toArray(),
    /** Oldest first. */
    listAttention: async (
      after: AttentionPlace | undefined,
      limit: number,
    ): Promise<AttentionRow[]> => {
      const rest = buildPlaceFilter('attention_since', after);
      const documents = await rows
        .find({ ...STUCK, ...rest })
        .sort({ attention_since: 1, _id: 1 })
        .limit(limit)
        .maxTimeMS(LIST_MS_MAX)
        .toArray();
      return documents.map(({ _id: resource_id, attention_since: since = 0, ...row }) => ({
        resource_id,
        reason: row.attention ?? '',
        since,
        amount: row.amount,
        currency: row.currency,
        acknowledged: false,
      }));
    },
    /** Oldest first. */
    listAcknowledged: (after: AttentionPlace | undefined, limit: number): Promise<AttentionRow[]> =>
      rows
        .aggregate<AttentionRow>(
          [
            { $match: { 'acknowledged.since': { $gte: after?.since ?? 0 } } },
            { $unwind: '$acknowledged' },
            { $match: buildPlaceFilter('acknowledged.since', after) },
            { $sort: { 'acknowledged.since': 1, _id: 1 } },
            { $limit: limit },
            {
              $project: {
                _id: 0,
                resource_id: '$_id',
                reason: '$acknowledged.reason',
                since: '$acknowledged.since',
                ...{ amount: 1, currency: 1, acknowledged: { $literal: true } },
              },
            },
          ],
          { maxTimeMS: LIST_MS_MAX },
        )
        .toArray(),
    inFlight: (after: string, limit: number) =>
      rows
        .find({ status: { $in: inFlight }, _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit),
    inFlightOf: async (
      account_id: string,
      { after, limit, since }: InFlightPage,
    ): Promise<string[]> => {
      const own = { account_id, livemode: false, status: { $in: inFlight } };
      const position = toRange({ $gte: since });
      const page = await rows
        .find({ ...own, _id: { $gt: after }, ...omitUndefined({ position }) })
        .sort({ _id: 1 })
        .limit(limit)
        .project<{ _id: string }>({ _id: 1 })
        .toArray();
      return page.map(({ _id }) => _id);
    },
    countInFlightOf: (account_id: string, limit: number): Promise<number> =>
      rows.countDocuments({ account_id, livemode: false, status: { $in: inFlight } }, { limit }),
    /** Writes only at `version`. @returns null when it has changed */
    update: (
      id: string,
      version: number,
      change: Partial<D>,
      by: { audit: AuditEntry[]; callback_id?: string | undefined; id?: string | undefined },
      session: ClientSession,
    ) => {
      const { audit, callback_id, id: last_transition } = by;
      const $set = { ...change, ...omitUndefined({ last_transition }) };
      const applied_callbacks = { $each: [callback_id], $slice: -APPLIED_MAX };
      const pushed = {
        ...(audit.length === 0 ? {} : { audit: { $each: audit } }),
        ...(callback_id === undefined ? {} : { applied_callbacks }),
      };
      return rows.findOneAndUpdate(
        { _id: id, version },
        Object.keys(pushed).length === 0 ? { $set } : { $set, $push: pushed },
        { session, returnDocument: 'after' },
      );
    },
    /**
     * Writes a reason of the workflow.
     * @returns false at another version, after a later update, or for a repeat
     */
    setAttention: (id: string, update: AttentionUpdate, session?: ClientSession) =>
      writeAttention(id, update, [COUNTED], session),
    /** Writes a reason of the service, which leaves the version. @returns as `setAttention` */
    markAttention: (id: string, update: AttentionUpdate, session?: ClientSession) =>
      writeAttention(id, update, [], session),
    /** Counts a booking. @returns false at another version */
    countWrite: async (_id: string, version: number, session: ClientSession): Promise<boolean> =>
      (await rows.updateOne({ _id, version }, [COUNTED], { session })).matchedCount === 1,
  };
}

const COUNTED = { $set: { version: { $add: ['$version', 1] } } };

function buildPlaceFilter(field: string, after: AttentionPlace | undefined): object {
  return afterRow(field, after && { _id: after.resource_id, value: after.since });
}
