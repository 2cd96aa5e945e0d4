import type { BookDocument, EntryStateDocument } from '../ledger/documents';
import { type Sums, sumEntryLines } from '../ledger/pending';
import {
  behindCheckpoint,
  between,
  buildCheckpoint,
  type CheckpointDocument,
  copyTally,
  startTally,
  type Tally,
} from './checkpoints';
import { compareBook, compareValues, type Difference, difference, type EntryRow } from './compare';
import { type BookCheck, examine } from './owners';
import { type Read, readAll } from './snapshot';

/**
 * Compares the balances of a book with its last checkpoint and the entries since, and writes due
 * checkpoints. No checkpoint covers a difference, so the next run reports it again.
 * @param isFull reads checkpointed entries again, too
 */
export async function verifyBook(check: BookCheck, book: string, isFull: boolean) {
  const { least, most } = check.checkpointSize;
  const start = isFull
    ? await reread(check, book)
    : { tally: startTally(await check.checkpoints.last(book)), mayCheckpoint: true };
  let { tally, mayCheckpoint } = start;
  let checkpointCount = 0;
  while (true) {
    const step = await readNext(check, book, tally);
    check.report(step.differences);
    tally = step.tally;
    mayCheckpoint &&= step.isClean;
    const isEnough = tally.entries >= (step.end === undefined ? most : least);
    const checkpoint = mayCheckpoint && isEnough ? buildCheckpoint(book, tally, check.now()) : null;
    if (checkpoint !== null) {
      // A concurrent verification was first, and continues with this book.
      mayCheckpoint = await check.checkpoints.write(checkpoint);
      if (mayCheckpoint) {
        tally = behindCheckpoint(tally, checkpoint);
        checkpointCount += 1;
      }
    }
    if (step.end !== undefined) return { ...step.end, checkpointCount };
  }
}

/**
 * Reads in one snapshot as many old entries as a checkpoint may cover; with the last of them also
 * the rest of the book and its balances.
 */
async function readNext(check: BookCheck, book: string, before: Tally) {
  const { inSnapshot, checkpointBefore, checkpointSize } = check;
  return await inSnapshot(async (read) => {
    const tally = copyTally(before);
    const old = { ...between(book, tally.to, checkpointBefore), limit: checkpointSize.most };
    const rows = read<EntryRow>('journal_entries', {}, old);
    const faults = await examine(check, read, rows, tally);
    const isClean = faults.length === 0;
    if (tally.total === before.total + checkpointSize.most) {
      return { tally, differences: faults, isClean };
    }
    const fullTally = copyTally(tally);
    const rest = read<EntryRow>('journal_entries', {}, between(book, tally.to));
    const later = await examine(check, read, rest, fullTally);
    const stored = await readBook(read, book);
    const pending = await readPending(read, book);
    const balances = compareBook({ _id: book, stored, pending, lineSums: fullTally.sums });
    const end = { entries: fullTally.total, isStored: stored !== null || pending.size > 0 };
    return { tally, differences: [...faults, ...later, ...balances], isClean, end };
  });
}

async function readBook(read: Read, _id: string): Promise<BookDocument | null> {
  const [book] = await readAll(read<BookDocument>('ledger_books', { _id }));
  return book ?? null;
}

async function readPending(read: Read, book: string): Promise<Sums> {
  const filter = { book, pending: true };
  const rows = read<EntryStateDocument>('entry_states', filter, { projection: { lines: 1 } });
  return sumEntryLines(await readAll(rows));
}

/** Compares each checkpoint with the entries that exist now, which the returned tally counts. */
async function reread(check: BookCheck, book: string) {
  let last: CheckpointDocument | null = null;
  let drift = { total: 0, sums: new Map<string, bigint>() };
  let mayCheckpoint = true;
  for await (const checkpoint of check.checkpoints.inOrder(book)) {
    const before: CheckpointDocument | null = last;
    const { range, faults } = await check.inSnapshot(async (read) => {
      const range = startTally(before);
      const options = between(book, range.to, checkpoint.to);
      const rows = read<EntryRow>('journal_entries', {}, options);
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
  const { _id, book, entries, hash } = checkpoint;
  const [number, previous] = [(before?.number ?? 0) + 1, `${before?.hash ?? null}`];
  const chainFaults = [
    ...compareValues('checkpoint_broken', _id, 'number', number, checkpoint.number),
    ...compareValues('checkpoint_broken', _id, 'previous', previous, `${checkpoint.previous}`),
  ];
  if (chainFaults.length > 0) return chainFaults;
  if (range.entries !== entries) {
    const name = range.entries > entries ? 'posting_behind_checkpoint' : 'checkpoint_differs';
    return [difference(name, _id, 'entries', entries, range.entries)];
  }
  const actual = buildCheckpoint(book, range, new Date(checkpoint.created_at));
  return compareValues('checkpoint_differs', _id, 'hash', hash, actual?.hash);
}
