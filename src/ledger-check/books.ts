import type { BookDocument } from '../ledger/documents';
import { type Sums, sumEntryLines } from '../ledger/pending';
import {
  behindCheckpoint,
  between,
  buildCheckpoint,
  copyTally,
  startTally,
  type Tally,
} from './checkpoints';
import { compareBook, type EntryRow } from './compare';
import { type BookCheck, examine } from './owners';
import { reread } from './reread';
import { type Read, readAll } from './snapshot';

export interface BookCounts {
  /** Entries of the book, checkpointed ones included. */
  postings: number;
  checkpointCount: number;
  isStored: boolean;
}

/**
 * Compares the balances of a book with its last checkpoint and the entries since, and writes the
 * checkpoints that are due. No checkpoint covers a difference, so the next run reports it again.
 * @param isFull reads the checkpointed entries again, too
 */
export async function verifyBook(
  check: BookCheck,
  book: string,
  isFull: boolean,
): Promise<BookCounts> {
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
    const isEnough = tally.postings >= (step.end === undefined ? most : least);
    const checkpoint = mayCheckpoint && isEnough ? buildCheckpoint(book, tally, check.now()) : null;
    if (checkpoint !== null) {
      // Another verification was first, and continues with this book.
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
    const rows = read<EntryRow>('ledger_postings', {}, old);
    const faults = await examine(check, read, rows, tally);
    const isClean = faults.length === 0;
    if (tally.total === before.total + checkpointSize.most) {
      return { tally, differences: faults, isClean };
    }
    const fullTally = copyTally(tally);
    const rest = read<EntryRow>('ledger_postings', {}, between(book, tally.to));
    const later = await examine(check, read, rest, fullTally);
    const stored = await readBook(read, book);
    const pending = await readPending(read, book);
    const balances = compareBook({ _id: book, stored, pending, lineSums: fullTally.sums });
    const end = { postings: fullTally.total, isStored: stored !== null || pending.size > 0 };
    return { tally, differences: [...faults, ...later, ...balances], isClean, end };
  });
}

async function readBook(read: Read, _id: string): Promise<BookDocument | null> {
  const [book] = await readAll(read<BookDocument>('ledger_books', { _id }));
  return book ?? null;
}

async function readPending(read: Read, book: string): Promise<Sums> {
  const filter = { book, open: true };
  const rows = read<EntryRow>('ledger_postings', filter, { projection: { legs: 1 } });
  return sumEntryLines(await readAll(rows));
}
