import {
  between,
  buildCheckpoint,
  type CheckpointDocument,
  startTally,
  type Tally,
} from './checkpoints';
import { compareValues, type Difference, difference, type EntryRow } from './compare';
import { type BookCheck, examine } from './examine';

/**
 * Reads everything behind the checkpoints of a book again, and compares each with what it sealed.
 * The count that it gives is that of the postings which are there now.
 */
export async function reread(check: BookCheck, book: string) {
  let last: CheckpointDocument | null = null;
  let drift = { total: 0, sums: new Map<string, bigint>() };
  let mayBeSealed = true;
  for await (const checkpoint of check.checkpoints.inOrder(book)) {
    const before: CheckpointDocument | null = last;
    const { range, faults } = await check.inSnapshot(async (read) => {
      const range = startTally(before);
      const options = between(book, range.to, checkpoint.to);
      const rows = read<EntryRow>('ledger_postings', {}, options);
      return { range, faults: await examine(check, read, rows, range) };
    });
    const differences = [...compareCheckpoint(checkpoint, before, range), ...faults];
    check.report(differences);
    mayBeSealed &&= differences.length === 0;
    drift = addDrift(drift, checkpoint, range);
    last = checkpoint;
  }
  const tally = startTally(last);
  for (const [account, amount] of drift.sums) {
    tally.sums.set(account, (tally.sums.get(account) ?? 0n) + amount);
  }
  return { tally: { ...tally, total: tally.total + drift.total }, mayBeSealed };
}

/** Sums by which the postings that are there differ from those that were sealed. */
function addDrift(
  { total, sums }: { total: number; sums: ReadonlyMap<string, bigint> },
  checkpoint: CheckpointDocument,
  range: Tally,
) {
  const checkpointTally = startTally(checkpoint);
  const accounts = new Set([...checkpointTally.sums.keys(), ...range.sums.keys()]);
  const changes = [...accounts].flatMap((account): [string, bigint][] => {
    const amount = (range.sums.get(account) ?? 0n) - (checkpointTally.sums.get(account) ?? 0n);
    return amount === 0n ? [] : [[account, (sums.get(account) ?? 0n) + amount]];
  });
  return {
    total: total + range.total - checkpointTally.total,
    sums: new Map([...sums, ...changes]),
  };
}

/** Pure: differences of a checkpoint from the one before it, and from what stands behind it now. */
function compareCheckpoint(
  checkpoint: CheckpointDocument,
  before: CheckpointDocument | null,
  range: Tally,
): Difference[] {
  const { _id, book, postings, hash } = checkpoint;
  const chainFaults = [
    ...compareValues(
      'checkpoint_broken',
      _id,
      'number',
      (before?.number ?? 0) + 1,
      checkpoint.number,
    ),
    ...compareValues(
      'checkpoint_broken',
      _id,
      'previous',
      `${before?.hash ?? null}`,
      `${checkpoint.previous}`,
    ),
  ];
  if (chainFaults.length > 0) return chainFaults;
  if (range.postings > postings) {
    return [difference('posting_behind_checkpoint', _id, 'postings', postings, range.postings)];
  }
  if (range.postings < postings) {
    return [difference('checkpoint_differs', _id, 'postings', postings, range.postings)];
  }
  const actual = buildCheckpoint(book, range, new Date(checkpoint.sealed_at));
  return compareValues('checkpoint_differs', _id, 'hash', hash, actual?.hash);
}
