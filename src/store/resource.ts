import type { AggregationCursor, ClientSession, UpdateResult } from 'mongodb';
import { omitUndefined } from '../domain/defined';
import type { Failure } from '../domain/failure';
import type { StoredVerification } from '../domain/payout/payout';
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

export interface AuditEntry {
  /** Derived id, so that a repeated write adds nothing. */
  id: string;
  who: string;
  when: string;
  what: string;
  why: string;
  before: string;
  after: string;
  approved_by?: string;
  approval_id?: string;
  /** The operator of `mark_failed` knew it from the bank; the service did not check. */
  bank_confirmed_not_executed?: true;
}

type AttentionAct = Pick<AuditEntry, 'id' | 'who' | 'what' | 'why' | 'approved_by'> & {
  at: string;
};

export interface AttentionUpdate<Attention extends string = string> {
  version: number;
  attention: Attention | null;
  audit: AttentionAct | null;
  /** Workflow time, ms since the epoch; it increases with each update. */
  attention_at: number;
  snoozed?: Snooze;
  /** The bank's, stored where there is none yet. */
  bank_reference?: string;
  /** Result of a payout's name check, stored unless there is a newer one. */
  verification?: StoredVerification;
}

/** Until the next transition. */
interface Snooze {
  transition: number;
  /** ms since the epoch. */
  until: number;
}

interface AcknowledgedReason<Attention extends string = string> {
  reason: Attention;
  /** ms since the epoch. */
  since: number;
}

/** Per resource; the audit trail has all. */
const ACKNOWLEDGED_MAX = 20;

/**
 * Builds a write that ignores a repeated act, by its id, and that never replaces a later reason: an
 * abandoned attempt may write late.
 */
function buildAttentionUpdate(update: AttentionUpdate) {
  const { attention, audit: act, attention_at, snoozed, bank_reference, verification } = update;
  const before = { $ifNull: ['$attention', 'no attention'] };
  const { at: when, ...facts } = act ?? {};
  const literal = Object.entries(facts).map(([name, value]) => [name, { $literal: value }]);
  const entry = {
    ...Object.fromEntries(literal),
    ...{ when, before, after: attention ?? 'no attention' },
  };
  const audit = act ? { $concatArrays: ['$audit', [entry]] } : undefined;
  const latest = { $max: ['$attention_at', attention_at] };
  const unlessLater = { attention_at: { $not: { $gte: attention_at } } };
  const unlessNewer = { 'verification.checked_at': { $not: { $gt: verification?.checked_at } } };
  return {
    unlessDone: {
      ...(act ? { 'audit.id': { $ne: act.id } } : unlessLater),
      ...(verification === undefined ? {} : unlessNewer),
    },
    change: [
      {
        $set: omitUndefined({
          attention,
          audit,
          attention_at: latest,
          // A reason that stays keeps its time.
          attention_since:
            attention === null
              ? undefined
              : { $cond: [{ $eq: ['$attention', attention] }, STORED_SINCE, attention_at] },
          snoozed,
          bank_reference: bank_reference && { $ifNull: ['$bank_reference', bank_reference] },
          verification: verification && { $literal: verification },
          acknowledged: act?.what === 'acknowledge' ? ACKNOWLEDGED : undefined,
        }),
      },
    ],
  };
}

const STORED_SINCE = { $ifNull: ['$attention_since', '$attention_at'] };

const PRESENT = { reason: '$attention', since: STORED_SINCE };
const ACKNOWLEDGED = {
  $slice: [{ $concatArrays: [{ $ifNull: ['$acknowledged', []] }, [PRESENT]] }, -ACKNOWLEDGED_MAX],
};
