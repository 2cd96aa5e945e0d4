import type { DeleteResult } from 'mongodb';
import type { Listable } from './list';

interface Rows<D extends { _id: string }> extends Listable<D> {
  deleteMany(filter: object): Promise<DeleteResult>;
}

/**
 * Deletes rows by their ids, so that no statement runs long; one that changed meanwhile, and no
 * longer fits the filter, stays.
 * @returns how many
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
