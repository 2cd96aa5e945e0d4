import type { Document } from 'mongodb';
import type { Difference } from './compare';

/** Rows of one pipeline over one collection, in the snapshot that all passes share. */
export type Read = <Row extends Document>(
  collection: string,
  pipeline: Document[],
) => AsyncIterable<Row>;

/** Walk over the rows that the server has gathered. */
export type Pass = (read: Read) => AsyncIterable<Difference>;

/** Pass whose rows are each compared by a pure function. */
export function pass<Row extends Document>(
  collection: string,
  pipeline: Document[],
  compare: (row: Row) => Difference[],
): Pass {
  return async function* (read) {
    for await (const row of read<Row>(collection, pipeline)) yield* compare(row);
  };
}

/**
 * Stages that join the rows so far with another collection by `_id`, in one grouping.
 * @param both accumulators of the fields of both sides: `$push` for the many, `theOne` for the one
 */
export function pairOf(collection: string, pipeline: Document[], both: Document): Document[] {
  return [{ $unionWith: { coll: collection, pipeline } }, { $group: { _id: '$_id', ...both } }];
}

/** Accumulator of the only value of a field in a group; null where it has none. */
export function theOne(field: string): Document {
  return { $max: `$${field}` };
}
