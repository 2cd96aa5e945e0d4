import { createHash } from 'node:crypto';
import { type Collection, type Db, MaxKey, MinKey } from 'mongodb';
import { isDuplicateKey } from '../base/mongo';
import { WRITTEN } from '../ledger/book';
import { toBigInt } from '../ledger/integers';
import type { EntryRow } from './compare';

/** Place of a posting in its book: the time of its write, then its id. */
interface EntryPosition {
  written_at: string | null;
  posting: string;
}

/**
 * Seal of all postings of a book up to a place, chained to the one before it. It is written once and
 * never changed. @see docs/ledger.md#checkpoints
 */
export interface CheckpointDocument {
  /** `{book}:{number}` */
  _id: string;
  book: string;
  /** 1, 2, 3, … without a gap. */
  number: number;
  /** Hash of the checkpoint before; null for the first. */
  previous: string | null;
  /** Last posting of the checkpoint before; null for the first. */
  from: EntryPosition | null;
  /** Last posting that it seals. */
  to: EntryPosition;
  /** Number of postings between the two. */
  postings: number;
  /** Number of postings of the book up to here. */
  total: number;
  /** Sums of all legs of the book up to here; minor units, as text of any length. */
  sums: { account: string; amount: string }[];
  /** SHA-256 over the hash before it, each posting's content in order, and the fields above. */
  hash: string;
  /** ISO 8601, ms. */
  sealed_at: string;
}

export type CheckpointStore = ReturnType<typeof createCheckpointStore>;

export function createCheckpointStore(db: Db) {
  const checkpoints: Collection<CheckpointDocument> = db.collection('ledger_checkpoints', {
    readPreference: 'primary',
    readConcern: { level: 'majority' },
    writeConcern: { w: 'majority', journal: true },
  });
  return {
    ensureIndexes: () =>
      checkpoints.createIndexes([{ key: { book: 1, number: 1 }, name: 'book', unique: true }]),
    /** Finds the newest checkpoint of a book. */
    last: (book: string) => checkpoints.findOne({ book }, { sort: { number: -1 } }),
    /**
     * Walks over the checkpoints of a book, oldest first, each by a query of its own, since a cursor
     * would time out between them.
     */
    inOrder: async function* (book: string): AsyncGenerator<CheckpointDocument> {
      const next = (number: number) =>
        checkpoints.findOne({ book, number: { $gt: number } }, { sort: { number: 1 } });
      let current = await next(0);
      while (current !== null) {
        yield current;
        current = await next(current.number);
      }
    },
    /** Finds the first book behind another one that has a checkpoint. */
    nextBook: async (after: string): Promise<string | undefined> => {
      const first = { sort: { book: 1 }, projection: { book: 1 } } as const;
      return (await checkpoints.findOne({ book: { $gt: after } }, first))?.book;
    },
    /** Writes a checkpoint once; false when another verification was first. */
    seal: async (checkpoint: CheckpointDocument): Promise<boolean> => {
      try {
        await checkpoints.insertOne(checkpoint);
        return true;
      } catch (error) {
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    },
  };
}

/** Sums and hash over the postings of a book, as they are read in order. */
export interface Tally {
  /** Last checkpoint, which the next one follows. */
  number: number;
  hash: string | null;
  /** Last posting that a checkpoint covers, and the last that was counted. */
  from: EntryPosition | null;
  to: EntryPosition | null;
  postings: number;
  total: number;
  sums: Map<string, bigint>;
  chain: ReturnType<typeof createHash>;
}

/** Begins behind a checkpoint, or with the first posting of the book. */
export function startTally(last: CheckpointDocument | null): Tally {
  const sums = (last?.sums ?? []).map(({ account, amount }) => [account, BigInt(amount)] as const);
  return {
    number: last?.number ?? 0,
    hash: last?.hash ?? null,
    from: last?.to ?? null,
    to: last?.to ?? null,
    postings: 0,
    total: last?.total ?? 0,
    sums: new Map(sums),
    chain: startChain(last?.hash ?? null),
  };
}

/** Counts the next posting of the book. */
export function addEntry(tally: Tally, entry: EntryRow): void {
  const { _id, kind, resource_id, legs = [] } = entry;
  const { at = null, written_at = null, value_date = null } = entry;
  const times = [at, written_at, value_date];
  const amounts = legs.map(({ account, amount }) => [account, String(amount)]);
  tally.chain.update(`${JSON.stringify([_id, kind, resource_id, ...times, amounts])}\n`);
  for (const { account, amount } of legs) {
    tally.sums.set(account, (tally.sums.get(account) ?? 0n) + (toBigInt(amount) ?? 0n));
  }
  tally.to = { written_at, posting: _id };
  tally.postings += 1;
  tally.total += 1;
}

/** Checkpoint over what was counted since the last one; null without a posting. */
export function buildCheckpoint(book: string, tally: Tally, now: Date): CheckpointDocument | null {
  const { hash: previous, from, to, postings, total } = tally;
  if (to === null || postings === 0) return null;
  const number = tally.number + 1;
  const sums = [...tally.sums]
    .map(([account, amount]) => ({ account, amount: String(amount) }))
    .sort((a, b) => (a.account < b.account ? -1 : 1));
  const chained = { book, number, previous, from, to, postings, total, sums };
  const hash = tally.chain
    .copy()
    .update(JSON.stringify(Object.values(chained)))
    .digest('hex');
  return { _id: `${book}:${number}`, ...chained, hash, sealed_at: now.toISOString() };
}

/** Goes on behind a checkpoint of what was counted. */
export function behindCheckpoint(tally: Tally, { number, hash, to }: CheckpointDocument): Tally {
  return { ...tally, number, hash, from: to, to, postings: 0, chain: startChain(hash) };
}

/** Copies a count, for a read that may have to begin again. */
export function copyTally(tally: Tally): Tally {
  return { ...tally, sums: new Map(tally.sums), chain: tally.chain.copy() };
}

function startChain(previous: string | null) {
  return createHash('sha256').update(`${previous}\n`);
}

/**
 * Options of a find that walks over the postings of a book in order, by the bounds of their index.
 * @param after place of the posting before the first one
 * @param upTo place of the last one, or the time up to which they were written
 */
export function between(book: string, after: EntryPosition | null, upTo?: EntryPosition | Date) {
  const first = { written_at: new MinKey(), _id: new MinKey() };
  const end = { written_at: new MaxKey(), _id: new MaxKey() };
  return {
    hint: WRITTEN,
    min: { book, ...(after === null ? first : boundAfter(after)) },
    max: {
      book,
      ...(upTo === undefined
        ? end
        : upTo instanceof Date
          ? { written_at: upTo.toISOString(), _id: new MinKey() }
          : boundAfter(upTo)),
    },
  };
}

/** The least bound behind a place: no id stands between an id and itself with a zero behind it. */
function boundAfter({ written_at, posting }: EntryPosition) {
  return { written_at, _id: `${posting}\u0000` };
}
