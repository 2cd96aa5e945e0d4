import type { BookDocument } from '../documents';
import { type Sums, sumsOf } from '../open';
import {
  behindCheckpoint,
  between,
  checkpointOf,
  copyOf,
  type Tally,
  tallyFrom,
} from './checkpoints';
import { compareBook, type PostingRow } from './compare';
import { type BookCheck, examine } from './examine';
import { reread } from './reread';
import { all, type Read } from './snapshot';

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
  const begun = isFull ? await reread(check, book) : await resume(check, book);
  let { tally, mayBeSealed } = begun;
  let sealed = 0;
  while (true) {
    const step = await readOn(check, book, tally);
    check.tell(step.differences);
    tally = step.tally;
    mayBeSealed &&= step.isClean;
    const isEnough = tally.postings >= (step.end === undefined ? most : least);
    const checkpoint = mayBeSealed && isEnough ? checkpointOf(book, tally, check.now()) : null;
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
  return { tally: tallyFrom(await checkpoints.last(book)), mayBeSealed: true };
}

/**
 * Reads on in one snapshot: as many old postings as a checkpoint may seal; or, when no more are
 * left, the rest of the book and its balances too.
 * @returns the count of the old ones
 */
async function readOn(check: BookCheck, book: string, before: Tally) {
  const { inSnapshot, sealBefore, sealing } = check;
  return await inSnapshot(async (read) => {
    const tally = copyOf(before);
    const old = { ...between(book, tally.to, sealBefore), limit: sealing.most };
    const rows = read<PostingRow>('ledger_postings', {}, old);
    const faults = await examine(check, read, rows, tally);
    const isClean = faults.length === 0;
    if (tally.total === before.total + sealing.most) {
      return { tally, differences: faults, isClean };
    }
    const whole = copyOf(tally);
    const rest = read<PostingRow>('ledger_postings', {}, between(book, tally.to));
    const later = await examine(check, read, rest, whole);
    const kept = await bookOf(read, book);
    const open = await openIn(read, book);
    const balances = compareBook({ _id: book, kept, open, posted: whole.sums });
    const end = { postings: whole.total, isKept: kept !== null || open.size > 0 };
    return { tally, differences: [...faults, ...later, ...balances], isClean, end };
  });
}

async function bookOf(read: Read, _id: string): Promise<BookDocument | null> {
  const [book] = await all(read<BookDocument>('ledger_books', { _id }));
  return book ?? null;
}

async function openIn(read: Read, book: string): Promise<Sums> {
  const legs = { projection: { legs: 1 } };
  return sumsOf(await all(read<PostingRow>('ledger_postings', { book, open: true }, legs)));
}
