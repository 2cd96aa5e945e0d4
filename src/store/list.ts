import type { FindCursor } from 'mongodb';
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
  const bounds = omitUndefined({ $lt, $gt: after, $gte: since });
  return omitUndefined({
    ...equal,
    position: Object.keys(bounds).length === 0 ? undefined : bounds,
  });
}

/** The server stops a list after it, and the API responds that it is unavailable. */
export const LIST_MS_MAX = 4_000;

/** Limit for all batches of an export. */
export const EXPORT_MS_MAX = 60_000;
