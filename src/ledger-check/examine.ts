import { addEntry, type CheckpointStore, type Tally } from './checkpoints';
import { compareEntry, type Difference, type EntryRow } from './compare';
import { compareOwners } from './owners';
import type { InSnapshot, Read } from './snapshot';

/** Bounds of a checkpoint. */
export interface CheckpointBounds {
  /** Fewest postings that a checkpoint seals. */
  least: number;
  /** Most postings that it seals, and that one snapshot reads behind the margin. */
  most: number;
}

export interface BookCheck {
  inSnapshot: InSnapshot;
  checkpoints: CheckpointStore;
  sealing: CheckpointBounds;
  /** Time before which a posting must have been written to be sealed. */
  sealBefore: Date;
  /** Resources that have moved since are compared elsewhere. */
  comparedSince: string;
  now: () => Date;
  report: (differences: readonly Difference[]) => void;
  /** Told how many postings were read, for the progress. */
  onProgress: (postings: number) => void;
}

/** Postings that are looked at together. */
const BATCH = 1_000;

/** Counts postings, and finds the faults of each and of its resource. */
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
