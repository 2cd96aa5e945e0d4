import { createHash } from 'node:crypto';
import { type Collection, type Db, Decimal128, MaxKey, MinKey } from 'mongodb';
import { z } from 'zod';
import { isDuplicateKey } from '../base/mongo';
import { WRITTEN } from '../ledger/book';
import { toBigInt } from '../ledger/ledger-accounts';
import { type Difference, difference, type EntryRow } from './compare';

/** Time of the write, then id: the order within a book. */
interface EntryPosition {
  written_at: string | null;
  entry: string;
}

/**
 * Covers all entries of a book up to a position; chained to the one before it, and never changed.
 * @see docs/ledger.md#checkpoints
 */
export interface CheckpointDocument {
  /** `{book}:{number}` */
  _id: string;
  book: string;
  /** Counted from 1, without a gap. */
  number: number;
  /** Hash of the one before; null for the first. */
  previous: string | null;
  /** Last entry of the one before; null for the first. */
  from: EntryPosition | null;
  to: EntryPosition;
  entries: number;
  /** Entries of the book up to here. */
  total: number;
  /** Minor units of the book up to here, as text of any length. */
  sums: { account: string; amount: string }[];
  /** SHA-256 over `previous`, all fields of each entry in order, and the fields above. */
  hash: string;
  /** ISO 8601, ms. */
  created_at: string;
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
    last: (book: string) => checkpoints.findOne({ book }, { sort: { number: -1 } }),
    /** Reads oldest first, by a query each: a cursor would time out between them. */
    inOrder: async function* (book: string): AsyncGenerator<CheckpointDocument> {
      const next = (number: number) =>
        checkpoints.findOne({ book, number: { $gt: number } }, { sort: { number: 1 } });
      let current = await next(0);
      while (current !== null) {
        yield current;
        current = await next(current.number);
      }
    },
    nextBook: async (after: string): Promise<string | undefined> => {
      const first = { sort: { book: 1 }, projection: { book: 1 } } as const;
      return (await checkpoints.findOne({ book: { $gt: after } }, first))?.book;
    },
    write: async (checkpoint: CheckpointDocument): Promise<boolean> => {
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

/** Entries must be added in order. */
export interface Tally {
  number: number;
  hash: string | null;
  /** Last entry that a checkpoint covers, and the last that was counted. */
  from: EntryPosition | null;
  to: EntryPosition | null;
  entries: number;
  total: number;
  sums: Map<string, bigint>;
  chain: ReturnType<typeof createHash>;
}

export function startTally(last: CheckpointDocument | null): Tally {
  const sums = (last?.sums ?? []).map(({ account, amount }) => [account, BigInt(amount)] as const);
  return {
    number: last?.number ?? 0,
    hash: last?.hash ?? null,
    from: last?.to ?? null,
    to: last?.to ?? null,
    entries: 0,
    total: last?.total ?? 0,
    sums: new Map(sums),
    chain: startChain(last?.hash ?? null),
  };
}

export function addEntry(tally: Tally, entry: EntryRow): void {
  const { _id, written_at = null, lines = [] } = entry;
  tally.chain.update(`${JSON.stringify(toHashed(entry))}\n`);
  for (const { account, amount } of lines) {
    tally.sums.set(account, (tally.sums.get(account) ?? 0n) + (toBigInt(amount) ?? 0n));
  }
  tally.to = { written_at, entry: _id };
  tally.entries += 1;
  tally.total += 1;
}

/** Sorts fields, and writes integers of any type alike. */
function toHashed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toHashed);
  if (['bigint', 'number'].includes(typeof value) || value instanceof Decimal128) {
    return String(value);
  }
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return fields.map(([name, each]) => [name, toHashed(each)]);
}

/** @returns null when no entry was counted */
export function buildCheckpoint(book: string, tally: Tally, now: Date): CheckpointDocument | null {
  const { hash: previous, from, to, entries, total } = tally;
  if (to === null || entries === 0) return null;
  const number = tally.number + 1;
  const sums = [...tally.sums]
    .map(([account, amount]) => ({ account, amount: String(amount) }))
    .sort((a, b) => (a.account < b.account ? -1 : 1));
  const chained = { book, number, previous, from, to, entries, total, sums };
  const hash = tally.chain
    .copy()
    .update(JSON.stringify(Object.values(chained)))
    .digest('hex');
  return { _id: `${book}:${number}`, ...chained, hash, created_at: now.toISOString() };
}

export function behindCheckpoint(tally: Tally, { number, hash, to }: CheckpointDocument): Tally {
  return { ...tally, number, hash, from: to, to, entries: 0, chain: startChain(hash) };
}

/** A read may start again. */
export function copyTally(tally: Tally): Tally {
  return { ...tally, sums: new Map(tally.sums), chain: tally.chain.copy() };
}

function startChain(previous: string | null) {
  return createHash('sha256').update(`${previous}\n`);
}

/**
 * Builds a find over entries of a book in order, by the bounds of their index.
 * @param after exclusive position
 * @param upTo inclusive position, or exclusive time of the write
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

/** No id is between an id and the same id with a zero added. */
function boundAfter({ written_at, entry }: EntryPosition) {
  return { written_at, _id: `${entry}\u0000` };
}

/** Last checkpoint of each book, as an earlier verification reported it. */
export const StoredCheckpoints = z.array(
  z.object({ book: z.string(), number: z.int().positive(), hash: z.string() }),
);
export type StoredCheckpoint = z.infer<typeof StoredCheckpoints>[number];

function getCheckpoints(db: Db) {
  return db.collection<CheckpointDocument>('ledger_checkpoints', { readPreference: 'primary' });
}

export async function listLastCheckpoints(db: Db): Promise<StoredCheckpoint[]> {
  const rows = getCheckpoints(db).aggregate<StoredCheckpoint>(
    [
      { $sort: { book: 1, number: -1 } },
      { $group: { _id: '$book', number: { $first: '$number' }, hash: { $first: '$hash' } } },
      { $sort: { _id: 1 } },
      { $project: { _id: 0, book: '$_id', number: 1, hash: 1 } },
    ],
    { allowDiskUse: true },
  );
  return await rows.toArray();
}

/** Finds checkpoints that are missing, or whose hash differs from the stored one. */
export async function compareCheckpoints(
  db: Db,
  stored: readonly StoredCheckpoint[],
): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const { book, number, hash } of stored) {
    const checkpoint = await getCheckpoints(db).findOne({ book, number });
    const found = checkpoint?.hash ?? null;
    if (found === hash) continue;
    differences.push(difference('checkpoint_not_as_kept', `${book}:${number}`, null, hash, found));
  }
  return differences;
}
