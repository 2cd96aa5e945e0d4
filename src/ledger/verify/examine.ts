import { add, type CheckpointStore, type Tally } from './checkpoints';
import { comparePosting, type Difference, type PostingRow } from './compare';
import { compareOwners } from './owners';
import type { InSnapshot, Read } from './snapshot';

/** Bounds of a checkpoint. */
export interface Sealing {
  /** Fewest postings that a checkpoint seals. */
  least: number;
  /** Most postings that it seals, and that one snapshot reads behind the margin. */
  most: number;
}

export interface BookCheck {
  inSnapshot: InSnapshot;
  checkpoints: CheckpointStore;
  sealing: Sealing;
  /** Time before which a posting must have been written to be sealed. */
  sealBefore: Date;
  /** Resources that have moved since are compared elsewhere. */
  comparedSince: string;
  now: () => Date;
  tell: (differences: readonly Difference[]) => void;
  /** Told how many postings were read, for the progress. */
  looked: (postings: number) => void;
}

/** Postings that are looked at together. */
const BATCH = 1_000;

/** Counts postings, and finds the faults of each and of its resource. */
export async function examine(
  { comparedSince, looked }: BookCheck,
  read: Read,
  rows: AsyncIterable<PostingRow>,
  tally: Tally,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  let batch: PostingRow[] = [];
  const finish = async () => {
    differences.push(...(await compareOwners(read, batch, comparedSince)));
    looked(batch.length);
    batch = [];
  };
  for await (const posting of rows) {
    add(tally, posting);
    differences.push(...comparePosting(posting));
    batch.push(posting);
    if (batch.length === BATCH) await finish();
  }
  if (batch.length > 0) await finish();
  return differences;
}
