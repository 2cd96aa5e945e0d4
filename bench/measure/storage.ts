import { statSync } from 'node:fs';
import type { Client } from '@temporalio/client';
import type { Db, MongoClient } from 'mongodb';
import { z } from 'zod';
import { mean } from './statistics';

/** Bytes of a collection. */
export interface Sizes {
  /** Size of the documents, before MongoDB compresses them. */
  documents: number;
  /** Size of the compressed documents on the disk. */
  disk: number;
  indexes: number;
}

const StorageStats = z.object({
  size: z.number(),
  storageSize: z.number(),
  totalIndexSize: z.number(),
});

/** Reads the sizes of all collections, after everything was written to the disk. */
export async function readSizes(mongo: MongoClient, db: Db): Promise<Map<string, Sizes>> {
  await mongo.db('admin').command({ fsync: 1 });
  const collections = await db.listCollections({ type: 'collection' }).toArray();
  const sizes = new Map<string, Sizes>();
  for (const { name } of collections.filter((each) => !each.name.startsWith('system.'))) {
    const stages = [{ $collStats: { storageStats: {} } }];
    const [stats] = await db.collection(name).aggregate(stages).toArray();
    const { size, storageSize, totalIndexSize } = StorageStats.parse(stats?.['storageStats']);
    sizes.set(name, { documents: size, disk: storageSize, indexes: totalIndexSize });
  }
  return sizes;
}

/** Returns the growth of each collection, divided by a count. */
export function divideGrowth(
  before: ReadonlyMap<string, Sizes>,
  after: ReadonlyMap<string, Sizes>,
  count: number,
): Map<string, Sizes> {
  const grown = [...after].map(([name, sizes]) => {
    const { documents = 0, disk = 0, indexes = 0 } = before.get(name) ?? {};
    const growth = {
      documents: (sizes.documents - documents) / count,
      disk: (sizes.disk - disk) / count,
      indexes: (sizes.indexes - indexes) / count,
    };
    return [name, growth] as const;
  });
  return new Map(grown.filter(([, { documents, indexes }]) => documents + indexes > 0));
}

/** Returns the mean bytes of the histories of a few payments. @param payments workflow IDs of each */
export async function measureHistories(
  { workflow }: Client,
  payments: readonly (readonly string[])[],
): Promise<number> {
  const sums: number[] = [];
  for (const ids of payments) {
    const sizes = await Promise.all(
      ids.map(async (id) => (await workflow.getHandle(id).describe()).historySize ?? 0),
    );
    sums.push(sizes.reduce((sum, size) => sum + size, 0));
  }
  return mean(sums);
}

/** Returns the bytes of a file of SQLite with its log; null where there is none. */
export function readFileSize(path: string): number | null {
  const sizes = [path, `${path}-wal`].map(
    (name) => statSync(name, { throwIfNoEntry: false })?.size,
  );
  return sizes[0] === undefined ? null : sizes.reduce<number>((sum, size = 0) => sum + size, 0);
}
