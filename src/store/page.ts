import type { FindCursor } from 'mongodb';

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
