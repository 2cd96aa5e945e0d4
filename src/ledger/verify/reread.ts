import {
  between,
  type CheckpointDocument,
  checkpointOf,
  type Tally,
  tallyFrom,
} from './checkpoints';
import { type Difference, difference, type PostingRow, unlessSame } from './compare';
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
      const range = tallyFrom(before);
      const options = between(book, range.to, checkpoint.to);
      const rows = read<PostingRow>('ledger_postings', {}, options);
      return { range, faults: await examine(check, read, rows, range) };
    });
    const differences = [...compareCheckpoint(checkpoint, before, range), ...faults];
    check.tell(differences);
    mayBeSealed &&= differences.length === 0;
    drift = driftOf(drift, checkpoint, range);
    last = checkpoint;
  }
  const tally = tallyFrom(last);
  for (const [account, amount] of drift.sums) {
    tally.sums.set(account, (tally.sums.get(account) ?? 0n) + amount);
  }
  return { tally: { ...tally, total: tally.total + drift.total }, mayBeSealed };
}

/** Sums by which the postings that are there differ from those that were sealed. */
function driftOf(
  { total, sums }: { total: number; sums: ReadonlyMap<string, bigint> },
  checkpoint: CheckpointDocument,
  range: Tally,
) {
  const sealed = tallyFrom(checkpoint);
  const accounts = new Set([...sealed.sums.keys(), ...range.sums.keys()]);
  const moved = [...accounts].flatMap((account): [string, bigint][] => {
    const amount = (range.sums.get(account) ?? 0n) - (sealed.sums.get(account) ?? 0n);
    return amount === 0n ? [] : [[account, (sums.get(account) ?? 0n) + amount]];
  });
  return { total: total + range.total - sealed.total, sums: new Map([...sums, ...moved]) };
}

/** Pure: differences of a checkpoint from the one before it, and from what stands behind it now. */
function compareCheckpoint(
  sealed: CheckpointDocument,
  before: CheckpointDocument | null,
  range: Tally,
): Difference[] {
  const { _id, book, postings, hash } = sealed;
  const broken = [
    ...unlessSame('checkpoint_broken', _id, 'number', (before?.number ?? 0) + 1, sealed.number),
    ...unlessSame(
      'checkpoint_broken',
      _id,
      'previous',
      `${before?.hash ?? null}`,
      `${sealed.previous}`,
    ),
  ];
  if (broken.length > 0) return broken;
  if (range.postings > postings) {
    return [difference('posting_behind_checkpoint', _id, 'postings', postings, range.postings)];
  }
  if (range.postings < postings) {
    return [difference('checkpoint_differs', _id, 'postings', postings, range.postings)];
  }
  const found = checkpointOf(book, range, new Date(sealed.sealed_at));
  return unlessSame('checkpoint_differs', _id, 'hash', hash, found?.hash);
}
