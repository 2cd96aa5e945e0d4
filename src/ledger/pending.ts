import type { ClientSession, Collection, Document } from 'mongodb';
import type { BookDocument, EntryStateDocument } from './documents';
import { bookOwner } from './entries';
import { toBigInt, toStoredInteger } from './integers';

export type Sums = ReadonlyMap<string, bigint>;

/** A number would not hold a large sum exactly. */
export const EXACT = { useBigInt64: true } as const;

export const PENDING_INDEX = {
  key: { book: 1, written_at: 1 },
  name: 'pending',
  partialFilterExpression: { pending: true },
} as const;

const APPLY_BATCH_MAX = 1_000;

/**
 * Applies the oldest pending entries in the caller's transaction. Two calls at once have a write
 * conflict, so each entry is applied once.
 * @returns the number of entries
 */
export async function applyPending(
  states: Collection<EntryStateDocument>,
  books: Collection<BookDocument>,
  book: string,
  session: ClientSession,
): Promise<number> {
  const oldest = {
    projection: { lines: 1, bank_day: 1 },
    sort: { written_at: 1 },
    limit: APPLY_BATCH_MAX,
  } as const;
  const pendingFilter = { book, pending: true } as const;
  const rows = await states.find(pendingFilter, { session, ...EXACT, ...oldest }).toArray();
  if (rows.length === 0) return 0;
  const { currency } = bookOwner(book);
  const increments = [...sumEntryLines(rows)].map(([path, sum]) => [
    path,
    toStoredInteger(sum, currency),
  ]);
  await books.updateOne(
    { _id: book },
    { $inc: Object.fromEntries(increments), $setOnInsert: bookOwner(book) },
    { session, upsert: true },
  );
  let applied = 0;
  // A statement line may still match them.
  const awaited = rows.filter(({ bank_day }) => bank_day !== undefined);
  if (awaited.length > 0) {
    const update = { $unset: { pending: '', lines: '' } } as const;
    const result = await states.updateMany(selectPending(awaited), update, { session });
    applied += result.modifiedCount;
  }
  const others = rows.filter(({ bank_day }) => bank_day === undefined);
  if (others.length > 0) {
    applied += (await states.deleteMany(selectPending(others), { session })).deletedCount;
  }
  if (applied !== rows.length) throw new Error(`Entries of ${book} are no longer pending.`);
  return rows.length;
}

function selectPending(rows: readonly EntryStateDocument[]) {
  return { _id: { $in: rows.map(({ _id }) => _id) }, pending: true } as const;
}

/** @param books one id, or a range of them */
export async function sumPending(
  states: Collection<EntryStateDocument>,
  books: string | { $gte: string; $lt: string } | { $gt: string; $lte?: string },
  session: ClientSession | undefined,
): Promise<ReadonlyMap<string, Sums>> {
  const stages: Document[] = [
    { $match: { book: books, pending: true } },
    { $unwind: '$lines' },
    {
      $group: {
        _id: { book: '$book', account: '$lines.account' },
        amount: { $sum: '$lines.amount' },
      },
    },
  ];
  const sumsByBook = new Map<string, Map<string, bigint>>();
  const rows = states.aggregate<{ _id: { book: string; account: string }; amount: unknown }>(
    stages,
    { session, ...EXACT },
  );
  for await (const { _id, amount } of rows) {
    const sums = sumsByBook.get(_id.book) ?? new Map<string, bigint>();
    sumsByBook.set(_id.book, sums.set(_id.account, toBigInt(amount) ?? 0n));
  }
  return sumsByBook;
}

export function sumEntryLines(
  rows: readonly { lines?: readonly { account: string; amount: unknown }[] }[],
): Sums {
  const sums = new Map<string, bigint>();
  for (const { account, amount } of rows.flatMap(({ lines = [] }) => lines)) {
    sums.set(account, (sums.get(account) ?? 0n) + (toBigInt(amount) ?? 0n));
  }
  return sums;
}

export function addPending(
  book: BookDocument | null,
  pending: Sums = new Map(),
): Map<string, unknown> {
  const { _id, account_id, livemode, currency, ...rest }: Partial<BookDocument> = book ?? {};
  const balances = new Map(walkLeaves(rest, ''));
  for (const [path, sum] of pending) {
    const balance = balances.get(path) ?? 0n;
    const integer = toBigInt(balance);
    balances.set(path, integer === undefined ? balance : integer + sum);
  }
  return balances;
}

function* walkLeaves(value: unknown, path: string): Generator<[path: string, value: unknown]> {
  if (typeof value !== 'object' || value === null || '_bsontype' in value) {
    yield [path, value];
    return;
  }
  for (const [name, inner] of Object.entries(value)) {
    yield* walkLeaves(inner, path === '' ? name : `${path}.${name}`);
  }
}
