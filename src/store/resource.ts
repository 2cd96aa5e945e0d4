import type { ClientSession, FindCursor, UpdateResult } from 'mongodb';
import type { NamedIndex } from '../base/mongo-indexes';
import { omitUndefined } from '../domain/defined';
import type { Failure } from '../domain/lifecycle';
import { type AttentionUpdate, type AuditEntry, buildAttentionUpdate } from './attention';

/** Fields that every resource with a workflow has, under their names on the wire. */
export interface ResourceDocument<
  Status extends string = string,
  Attention extends string = string,
> {
  _id: string;
  account_id: string;
  livemode: boolean;
  /** Moves made so far; every write of the lifecycle is conditional on it. */
  version: number;
  /** Place in lists. @see src/domain/cursor.ts */
  position: string;
  status: Status;
  /** Minor units; smallest units of a coin as a text. */
  amount: number | string;
  /** ISO 4217, or the book of a coin. @see src/domain/crypto/assets.ts */
  currency: string;
  /** Id of a payment method, of a payout's rail, or of a coin's pair. */
  method: string;
  failure: Failure | null;
  created_at: string;
  updated_at: string;
  connector: string;
  bank_reference: string | null;
  /** Reason why it needs a person; null when it doesn't. */
  attention: Attention | null;
  /** Time of its latest mark, in ms since the epoch; absent before the first. */
  attention_at?: number;
  request_id: string;
  audit: AuditEntry[];
  /** `callback_id`s that moved it, latest last; absent before the first. */
  applied_callbacks?: string[];
}

/** Filter of one page; that of a resource adds the fields by which its list can be narrowed. */
export interface ListFilter {
  account_id: string;
  livemode: boolean;
  /** Rows strictly before this position. */
  before?: string | undefined;
  /** Rows strictly after this position, those next to it. */
  after?: string | undefined;
  /** Rows at this position or after it. */
  since?: string | undefined;
  /** Rows strictly before this position, beside `before`. */
  until?: string | undefined;
  limit: number;
}

/** Operations of a collection as every resource needs them, in the type of its own documents. */
interface Rows<D> extends Listable<D> {
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

interface Listable<D> {
  find(filter: object): FindCursor<D>;
}

/** Entries that a move adds to the document's lists. */
export interface AppendedEntries {
  audit: AuditEntry[];
  /** Callback that asked for the move. */
  callback_id?: string | undefined;
}

/** Callbacks that a document remembers; a resource makes a handful of moves. */
const APPLIED_MAX = 50;

/** Queries that payments, refunds and payouts share; each store adds its own beside them. */
export function resourceStore<D extends ResourceDocument, F extends ListFilter>(
  rows: Rows<D>,
  inFlight: readonly D['status'][],
) {
  return {
    insert: (document: D, session: ClientSession) => rows.insertOne(document, { session }),
    /** Finds by id alone, for the service's own steps. */
    get: (id: string, session?: ClientSession) => rows.findOne({ _id: id }, { session }),
    /** Finds by id within one account and environment, as a merchant may see it. */
    find: (id: string, account_id: string, livemode: boolean) =>
      rows.findOne({ _id: id, account_id, livemode }),
    list: (filter: F) => listNewest(rows, filter),
    /** Reads a whole list, newest first, in small batches; whoever stops early closes it. */
    export: (filter: Omit<F, 'limit'>) => exportNewest(rows, filter),
    /** Rows that need a person, newest first. */
    listNeedingAttention: (account_id: string, livemode: boolean, limit: number) =>
      rows
        .find({ account_id, livemode, attention: HAS_ATTENTION })
        .sort({ position: -1 })
        .limit(limit)
        .maxTimeMS(LIST_MS_MAX)
        .toArray(),
    /** Page of what is in flight, in the order of ids, after one of them; '' for the first page. */
    inFlight: (after: string, limit: number) =>
      rows
        .find({ status: { $in: inFlight }, _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit),
    /** Writes only while the resource is at `version`; null when it no longer is. */
    update: (
      id: string,
      version: number,
      change: Partial<D>,
      { audit, callback_id }: AppendedEntries,
      session: ClientSession,
    ) => {
      const applied = callback_id === undefined ? [] : [callback_id];
      const pushed = {
        ...(audit.length === 0 ? {} : { audit: { $each: audit } }),
        ...(callback_id === undefined
          ? {}
          : { applied_callbacks: { $each: applied, $slice: -APPLIED_MAX } }),
      };
      return rows.findOneAndUpdate(
        { _id: id, version },
        Object.keys(pushed).length === 0 ? { $set: change } : { $set: change, $push: pushed },
        { session, returnDocument: 'after' },
      );
    },
    /**
     * Marks or unmarks it for operators, outside the count of versions.
     * @returns whether it was written: not at another version, under a later mark, or for a repeat
     */
    setAttention: async (
      id: string,
      attentionUpdate: AttentionUpdate,
      session?: ClientSession,
    ): Promise<boolean> => {
      const { unlessDone, change } = buildAttentionUpdate(attentionUpdate);
      const filter = { _id: id, version: attentionUpdate.version, ...unlessDone };
      return (await rows.updateOne(filter, change, { session })).matchedCount === 1;
    },
  };
}

/** Rows of one list, newest first; a filter that is undefined does not narrow it. */
export async function listNewest<D>(
  rows: Listable<D>,
  { limit, ...filter }: ListFilter,
): Promise<D[]> {
  const forwards = filter.after !== undefined;
  const page = await rows
    .find(listQuery(filter))
    .sort({ position: forwards ? 1 : -1 })
    .limit(limit)
    .maxTimeMS(LIST_MS_MAX)
    .toArray();
  return forwards ? page.reverse() : page;
}

const EXPORT_BATCH = 500;

function exportNewest<D>(rows: Listable<D>, filter: Omit<ListFilter, 'limit'>): FindCursor<D> {
  return rows.find(listQuery(filter)).sort({ position: -1 }).batchSize(EXPORT_BATCH);
}

function listQuery({ before, after, since, until, ...equal }: Omit<ListFilter, 'limit'>) {
  const ends = [before, until].filter((end) => end !== undefined);
  const $lt = ends.length === 0 ? undefined : ends.reduce((a, b) => (a < b ? a : b));
  const bounds = omitUndefined({ $lt, $gt: after, $gte: since });
  return omitUndefined({
    ...equal,
    position: Object.keys(bounds).length === 0 ? undefined : bounds,
  });
}

/** A list that takes longer is answered as unavailable, and must not go on on the server. */
export const LIST_MS_MAX = 4_000;

/** Filter of those that need a person. */
const HAS_ATTENTION = { $type: 'string' } as const;

/** Index of those that need a person, which are few. */
export const NEEDS_ATTENTION: NamedIndex = {
  key: { account_id: 1, livemode: 1, position: -1 },
  name: 'in_need_position',
  partialFilterExpression: { attention: HAS_ATTENTION },
};

/** First fields of every index of a list: no merchant reads another's rows. */
export const OWNER = { account_id: 1, livemode: 1 } as const;

/** Index of resources by their last move, for the verification of the ledger. */
export const UPDATED = { key: { updated_at: 1, _id: 1 }, name: 'updated' } as const;

/** Rows that need a person. */
export const STUCK = { attention: HAS_ATTENTION };

/** Index of those rows by why, which stays small. */
export const STUCK_INDEX = {
  key: { attention: 1, livemode: 1 },
  name: 'attention',
  partialFilterExpression: STUCK,
} as const;

/** Indexes of a list: the whole of it, and the rows of one value of each of these fields. */
export function listIndexes(...fields: string[]): NamedIndex[] {
  return [
    { key: { ...OWNER, position: -1 }, name: 'position', unique: true },
    ...fields.map((field) => ({
      key: { ...OWNER, [field]: 1, position: -1 } as const,
      name: `${field}_position`,
    })),
  ];
}

/** Index of what is in flight, which stays small however much has ended. */
export function inFlightIndex(inFlight: readonly string[]): NamedIndex {
  return {
    key: { status: 1, _id: 1 },
    name: 'in_flight',
    partialFilterExpression: { status: { $in: inFlight } },
  };
}
