import { randomUUID } from 'node:crypto';
import type { Db } from 'mongodb';

/**
 * Latest time that this database has seen; Temporal has a copy.
 * @see docs/operators.md#after-a-restore
 */
export interface EpochDocument {
  _id: 'epoch';
  /** Names the database, also after a restore: several may share a Temporal namespace. */
  installation: string;
  /** ISO 8601, ms. */
  at: string;
  /** A resource was rebuilt without its idempotency key, and no operator has decided about it. */
  keys_lost?: boolean;
}

export type EpochStore = ReturnType<typeof createEpochStore>;

export function createEpochStore(db: Db) {
  const epochs = db.collection<EpochDocument>('service_epoch', {
    readPreference: 'primary',
    readConcern: { level: 'majority' },
    writeConcern: { w: 'majority', journal: true },
  });
  return {
    read: () => epochs.findOne({ _id: 'epoch' }),
    noteLostKeys: (keys_lost: boolean) =>
      epochs.updateOne({ _id: 'epoch' }, { $set: { keys_lost } }),
    /** Never goes back. */
    raise: async (at: string): Promise<EpochDocument> => {
      const epoch = await epochs.findOneAndUpdate(
        { _id: 'epoch' },
        { $max: { at }, $setOnInsert: { installation: randomUUID() } },
        { upsert: true, returnDocument: 'after' },
      );
      if (epoch === null) throw new Error('The epoch was not stored.');
      return epoch;
    },
  };
}
