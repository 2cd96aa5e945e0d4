import { addEntry, type CheckpointStore, type Tally } from './checkpoints';
import { compareEntry, type Difference, type EntryRow } from './compare';
import { compareOwners } from './owners';
import type { InSnapshot, Read } from './snapshot';

export interface CheckpointSize {
  least: number;
  /** Most entries that it covers, and that one snapshot reads behind the margin. */
  most: number;
}

export interface BookCheck {
  inSnapshot: InSnapshot;
  checkpoints: CheckpointStore;
  checkpointSize: CheckpointSize;
  checkpointBefore: Date;
  /** Resources that changed since are compared elsewhere. ISO 8601; empty for all. */
  comparedSince: string;
  now: () => Date;
  report: (differences: readonly Difference[]) => void;
  onProgress: (postings: number) => void;
}

const BATCH = 1_000;

export async function examine(
  { comparedSince, onProgress }: BookCheck,
  read: Read,
  rows: AsyncIterable<EntryRow>,
  tally: Tally,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  let batch: EntryRow[] = [];
  const finish = async () => {
    differences.push(...(await compareOwners(read, batch, comparedSince)));
    onProgress(batch.length);
    batch = [];
  };
  for await (const entry of rows) {
    addEntry(tally, entry);
    differences.push(...compareEntry(entry));
    batch.push(entry);
    if (batch.length === BATCH) await finish();
  }
  if (batch.length > 0) await finish();
  return differences;
}
