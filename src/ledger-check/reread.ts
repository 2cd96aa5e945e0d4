import {
  between,
  buildCheckpoint,
  type CheckpointDocument,
  startTally,
  type Tally,
} from './checkpoints';
import { compareValues, type Difference, difference, type EntryRow } from './compare';
import { type BookCheck, examine } from './owners';

/**
 * Reads all checkpointed entries again, and compares each checkpoint with them. The returned tally
 * counts the entries that exist now.
 */
export async function reread(check: BookCheck, book: string) {
  let last: CheckpointDocument | null = null;
  let drift = { total: 0, sums: new Map<string, bigint>() };
  let mayCheckpoint = true;
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
    mayCheckpoint &&= differences.length === 0;
    drift = addDrift(drift, checkpoint, range);
    last = checkpoint;
  }
  const tally = startTally(last);
  for (const [account, amount] of drift.sums) {
    tally.sums.set(account, (tally.sums.get(account) ?? 0n) + amount);
  }
  return { tally: { ...tally, total: tally.total + drift.total }, mayCheckpoint };
}

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

function compareCheckpoint(
  checkpoint: CheckpointDocument,
  before: CheckpointDocument | null,
  range: Tally,
): Difference[] {
  const { _id, book, postings, hash } = checkpoint;
  const [number, previous] = [(before?.number ?? 0) + 1, `${before?.hash ?? null}`];
  const chainFaults = [
    ...compareValues('checkpoint_broken', _id, 'number', number, checkpoint.number),
    ...compareValues('checkpoint_broken', _id, 'previous', previous, `${checkpoint.previous}`),
  ];
  if (chainFaults.length > 0) return chainFaults;
  if (range.postings !== postings) {
    const name = range.postings > postings ? 'posting_behind_checkpoint' : 'checkpoint_differs';
    return [difference(name, _id, 'postings', postings, range.postings)];
  }
  const actual = buildCheckpoint(book, range, new Date(checkpoint.sealed_at));
  return compareValues('checkpoint_differs', _id, 'hash', hash, actual?.hash);
}
