import type { Collection, DeleteResult, FindCursor } from 'mongodb';
import type { NamedIndex } from '../base/mongo-indexes';
import { omitUndefined } from '../domain/defined';

export interface ListFilter {
  account_id: string;
  livemode: boolean;
  /** Exclusive position. */
  before?: string | undefined;
  /** Exclusive position of the newer neighbors. */
  after?: string | undefined;
  /** Inclusive position. */
  since?: string | undefined;
  /** Exclusive position, in addition to `before`. */
  until?: string | undefined;
  limit: number;
}

export interface Listable<D> {
  find(filter: object): FindCursor<D>;
}

/** Reads newest first; an undefined filter is ignored. */
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

export function listQuery({ before, after, since, until, ...equal }: Omit<ListFilter, 'limit'>) {
  const ends = [before, until].filter((end) => end !== undefined);
  const $lt = ends.length === 0 ? undefined : ends.reduce((a, b) => (a < b ? a : b));
  return omitUndefined({ ...equal, position: toRange({ $lt, $gt: after, $gte: since }) });
}

/** @returns undefined, which filters nothing, without a bound */
export function toRange(bounds: Partial<Record<'$lt' | '$gt' | '$gte', string | undefined>>) {
  const range = omitUndefined(bounds);
  return Object.keys(range).length === 0 ? undefined : range;
}

/** Selects what follows a row in the order of a field and of ids; all without a row. */
export function afterRow(field: string, row: { _id: string; value: unknown } | undefined): object {
  if (row === undefined) return {};
  const { _id, value } = row;
  return { $or: [{ [field]: { $gt: value } }, { [field]: value, _id: { $gt: _id } }] };
}

/** Counts rows by fields, with the environment as a text. @param more accumulators, next to the count */
export function countBy<Row extends object>(
  rows: Pick<Collection, 'aggregate'>,
  filter: object,
  labels: object,
  more: object = {},
): Promise<Row[]> {
  const stages = [
    { $match: filter },
    { $group: { _id: labels, count: { $sum: 1 }, ...more } },
    { $replaceWith: { $mergeObjects: ['$$ROOT', '$_id'] } },
    { $unset: '_id' },
    // After the groups: as text in each row, counts of many take twice as long.
    ...('livemode' in labels ? [{ $set: { livemode: { $toString: '$livemode' } } }] : []),
  ];
  return rows.aggregate<Row>(stages, { maxTimeMS: LIST_MS_MAX }).toArray();
}

/** The server stops a list after it, and the API responds that it is unavailable. */
export const LIST_MS_MAX = 4_000;

/** Limit for all batches of an export. */
export const EXPORT_MS_MAX = 60_000;

/** Reads in the order of ids. @param after id; '' for the first page */
export function readPage<D>(
  rows: { find(filter: object): FindCursor<D> },
  after: string,
  limit: number,
  filter: object = {},
): Promise<D[]> {
  return rows
    .find({ ...filter, _id: { $gt: after } })
    .sort({ _id: 1 })
    .limit(limit)
    .toArray();
}

interface Rows<D extends { _id: string }> extends Listable<D> {
  deleteMany(filter: object): Promise<DeleteResult>;
}

/**
 * Deletes by ids, so that no statement runs long; a row that no longer fits the filter stays.
 * @returns how many were deleted
 */
export async function deleteSome<D extends { _id: string }>(
  rows: Rows<D>,
  filter: object,
  limit: number,
): Promise<number> {
  const old = await rows.find(filter).limit(limit).project<{ _id: string }>({ _id: 1 }).toArray();
  if (old.length === 0) return 0;
  const ids = old.map(({ _id }) => _id);
  return (await rows.deleteMany({ ...filter, _id: { $in: ids } })).deletedCount;
}

/** First fields of every list index: no merchant reads rows of another. */
export const OWNER = { account_id: 1, livemode: 1 } as const;

export const UPDATED = { key: { updated_at: 1, _id: 1 }, name: 'updated' } as const;

export const STUCK = { attention: { $type: 'string' } } as const;

export function listIndexes(...fields: string[]): NamedIndex[] {
  return [
    { key: { ...OWNER, position: -1 }, name: 'position', unique: true },
    ...fields.map((field) => ({
      key: { ...OWNER, [field]: 1, position: -1 } as const,
      name: `${field}_position`,
    })),
  ];
}

/** Adds to the list's indexes small ones for what is in flight or stuck. */
export function resourceIndexes(inFlight: readonly string[], ...fields: string[]): NamedIndex[] {
  return [
    ...listIndexes(...fields),
    {
      key: { status: 1, _id: 1 },
      name: 'in_flight',
      partialFilterExpression: { status: { $in: inFlight } },
    },
    {
      key: { ...OWNER, position: -1 },
      name: 'in_need_position',
      partialFilterExpression: STUCK,
    },
    UPDATED,
    { key: { attention: 1, livemode: 1 }, name: 'attention', partialFilterExpression: STUCK },
    {
      key: { attention_since: 1, _id: 1 },
      name: 'attention_since',
      partialFilterExpression: STUCK,
    },
    {
      key: { 'acknowledged.since': 1 },
      name: 'acknowledged',
      partialFilterExpression: { 'acknowledged.since': { $exists: true } },
    },
  ];
}
