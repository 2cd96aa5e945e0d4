import type { DeleteResult } from 'mongodb';
import type { Listable } from './list';

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
