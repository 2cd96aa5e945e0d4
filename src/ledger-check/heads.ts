import type { Db } from 'mongodb';
import { z } from 'zod';
import type { CheckpointDocument } from './checkpoints';
import type { Difference } from './compare';

/** Last checkpoint of each book, as an earlier verification reported it. */
export const StoredCheckpoints = z.array(
  z.object({ book: z.string(), number: z.int().positive(), hash: z.string() }),
);
export type StoredCheckpoint = z.infer<typeof StoredCheckpoints>[number];

function getCheckpoints(db: Db) {
  return db.collection<CheckpointDocument>('ledger_checkpoints', { readPreference: 'primary' });
}

export async function listLastCheckpoints(db: Db): Promise<StoredCheckpoint[]> {
  const rows = getCheckpoints(db).aggregate<StoredCheckpoint>(
    [
      { $sort: { book: 1, number: -1 } },
      { $group: { _id: '$book', number: { $first: '$number' }, hash: { $first: '$hash' } } },
      { $sort: { _id: 1 } },
      { $project: { _id: 0, book: '$_id', number: 1, hash: 1 } },
    ],
    { allowDiskUse: true },
  );
  return await rows.toArray();
}

/** Finds checkpoints that are missing, or whose hash differs from the stored one. */
export async function compareCheckpoints(
  db: Db,
  stored: readonly StoredCheckpoint[],
): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const { book, number, hash } of stored) {
    const checkpoint = await getCheckpoints(db).findOne({ book, number });
    const found = checkpoint?.hash ?? null;
    if (found === hash) continue;
    const subject = `${book}:${number}`;
    differences.push({
      check: 'checkpoint_not_as_kept',
      subject,
      part: null,
      expected: hash,
      found,
    });
  }
  return differences;
}
