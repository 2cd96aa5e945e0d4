import { randomUUID } from 'node:crypto';
import type { Db } from 'mongodb';
import { ServiceError } from '../domain/errors';
import { describeOtherFormat, FORMAT, NEW_DATABASE } from '../domain/format';
import { KINDS, RESOURCES } from '../domain/resources';

/**
 * Latest time that this database has seen; Temporal has a copy.
 * @see docs/operators.md#after-a-restore
 */
export interface EpochDocument {
  _id: 'epoch';
  /** Names the database, also after a restore: several may share a Temporal namespace. */
  installation: string;
  /** `FORMAT` of the version that made the database. */
  format: number;
  /** ISO 8601, ms. */
  at: string;
  /** A resource was rebuilt without its idempotency key, and no operator has decided about it. */
  keys_lost?: boolean;
}

/** Without a majority, such a read would wait for ever. */
const SURE_MS_MAX = 4_000;

const MONGODB_TIME = {
  $dateToString: { date: '$$NOW', format: '%Y-%m-%dT%H:%M:%S.%LZ' },
} as const;

/** Earlier than any time of a worker. */
const NO_TIME = new Date(0).toISOString();

export type EpochStore = ReturnType<typeof createEpochStore>;

export function createEpochStore(db: Db) {
  const epochs = db.collection<EpochDocument>('service_epoch', {
    readPreference: 'primary',
    readConcern: { level: 'majority' },
    writeConcern: { w: 'majority', journal: true },
  });
  /** @param isSure asks a majority, also where a primary does not know that it is none any more */
  const read = ({ isSure = false } = {}): Promise<EpochDocument | null> =>
    epochs.findOne(
      { _id: 'epoch' },
      isSure ? { readConcern: { level: 'linearizable' }, maxTimeMS: SURE_MS_MAX } : {},
    );
  /** @throws ServiceError `other_format` */
  const checkFormat = async (): Promise<void> => {
    const stored = await read();
    if (stored === null ? await isNew() : stored.format === FORMAT) return;
    const place = `The database ${db.databaseName}`;
    const message = describeOtherFormat(place, stored?.format, NEW_DATABASE);
    throw new ServiceError('other_format', message);
  };
  /** Operators may have opened accounts before `migrate`, but no money was moved. */
  const isNew = async (): Promise<boolean> => {
    const found = await Promise.all(
      KINDS.map((kind) =>
        db.collection(RESOURCES[kind].collection).findOne({}, { projection: { _id: 1 } }),
      ),
    );
    return found.every((document) => document === null);
  };
  const newEpoch = () => ({ installation: randomUUID(), format: FORMAT });
  return {
    read,
    checkFormat,
    /** Notes the format before anything else is made. @throws ServiceError `other_format` */
    noteFormat: async (): Promise<void> => {
      await checkFormat();
      const fresh = { ...newEpoch(), at: NO_TIME };
      await epochs.updateOne({ _id: 'epoch' }, { $setOnInsert: fresh }, { upsert: true });
    },
    noteLostKeys: (keys_lost: boolean) =>
      epochs.updateOne({ _id: 'epoch' }, { $set: { keys_lost } }),
    /**
     * Never goes back.
     * @param at by default the time of MongoDB: a worker with a fast clock would hide a restore
     */
    raise: async (at?: string): Promise<EpochDocument> => {
      const { installation, format } = newEpoch();
      const raised = {
        at: { $max: ['$at', at ?? MONGODB_TIME] },
        installation: { $ifNull: ['$installation', installation] },
        format: { $ifNull: ['$format', format] },
      };
      const epoch = await epochs.findOneAndUpdate({ _id: 'epoch' }, [{ $set: raised }], {
        upsert: true,
        returnDocument: 'after',
      });
      if (epoch === null) throw new Error('The epoch was not stored.');
      return epoch;
    },
  };
}
