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
import { type BookCheck, examine } from './examine';
import { reread } from './reread';
import { type Read, readAll } from './snapshot';

/** Counts of one book. */
export interface BookCounts {
  /** All postings, those behind the checkpoints included. */
  postings: number;
  /** Checkpoints written by this run. */
  sealed: number;
  isKept: boolean;
}

/**
 * Holds the balances of a book against its last checkpoint and the postings since, and seals those
 * that are old enough. What differs is not sealed, so that it is told again.
 * @param isFull reads everything behind the checkpoints again, too
 */
export async function verifyBook(
  check: BookCheck,
  book: string,
  isFull: boolean,
): Promise<BookCounts> {
  const { least, most } = check.sealing;
  const start = isFull ? await reread(check, book) : await resume(check, book);
  let { tally, mayBeSealed } = start;
  let sealed = 0;
  while (true) {
    const step = await readNext(check, book, tally);
    check.report(step.differences);
    tally = step.tally;
    mayBeSealed &&= step.isClean;
    const isEnough = tally.postings >= (step.end === undefined ? most : least);
    const checkpoint = mayBeSealed && isEnough ? buildCheckpoint(book, tally, check.now()) : null;
    if (checkpoint !== null) {
      // Another verification may have been first: this one goes on, and seals no more of the book.
      mayBeSealed = await check.checkpoints.seal(checkpoint);
      if (mayBeSealed) {
        tally = behindCheckpoint(tally, checkpoint);
        sealed += 1;
      }
    }
    if (step.end !== undefined) return { ...step.end, sealed };
  }
}

async function resume({ checkpoints }: BookCheck, book: string) {
  return { tally: startTally(await checkpoints.last(book)), mayBeSealed: true };
}

/**
 * Reads on in one snapshot: as many old postings as a checkpoint may seal; or, when no more are
 * left, the rest of the book and its balances too.
 * @returns the count of the old ones
 */
async function readNext(check: BookCheck, book: string, before: Tally) {
  const { inSnapshot, sealBefore, sealing } = check;
  return await inSnapshot(async (read) => {
    const tally = copyTally(before);
    const old = { ...between(book, tally.to, sealBefore), limit: sealing.most };
    const rows = read<EntryRow>('ledger_postings', {}, old);
    const faults = await examine(check, read, rows, tally);
    const isClean = faults.length === 0;
    if (tally.total === before.total + sealing.most) {
      return { tally, differences: faults, isClean };
    }
    const fullTally = copyTally(tally);
    const rest = read<EntryRow>('ledger_postings', {}, between(book, tally.to));
    const later = await examine(check, read, rest, fullTally);
    const stored = await readBook(read, book);
    const pending = await readPending(read, book);
    const balances = compareBook({ _id: book, stored, pending, lineSums: fullTally.sums });
    const end = { postings: fullTally.total, isKept: stored !== null || pending.size > 0 };
    return { tally, differences: [...faults, ...later, ...balances], isClean, end };
  });
}

async function readBook(read: Read, _id: string): Promise<BookDocument | null> {
  const [book] = await readAll(read<BookDocument>('ledger_books', { _id }));
  return book ?? null;
}

async function readPending(read: Read, book: string): Promise<Sums> {
  const legs = { projection: { legs: 1 } };
  return sumEntryLines(
    await readAll(read<EntryRow>('ledger_postings', { book, open: true }, legs)),
  );
}
