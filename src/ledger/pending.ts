import type { ClientSession, Collection, Document } from 'mongodb';
import { buildPosition } from '../domain/cursor';
import type { BalanceTransactionType } from '../domain/money/money';
import { KINDS } from '../domain/resources';
import {
  type BalanceChange,
  type BankEntryKind,
  type BookDocument,
  bookOwner,
  type EntryDocument,
  type EntryKind,
  type EntryStateDocument,
  type NewEntry,
} from './entries';
import { readAvailable, toBigInt, toStoredInteger } from './ledger-accounts';

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

/** An entry without a line on an available balance has no row, whatever its kind. */
const TYPES = {
  funded: 'funding',
  adjusted: 'adjustment',
  reversed: 'adjustment',
  debt_collected: 'adjustment',
  payment_settled: 'payment',
  payment_held: 'payment',
  payment_resolved: 'payment',
  payment_clawed_back: 'chargeback',
  payment_dispute_opened: 'chargeback',
  payment_dispute_won: 'chargeback_reversal',
  refund_accepted: 'refund',
  /** Credits what the bank did not send. */
  refund_settled: 'refund_failure',
  refund_failed: 'refund_failure',
  refund_held: 'refund',
  refund_resolved: 'refund',
  payout_reserved: 'payout',
  payout_captured: 'payout',
  payout_released: 'payout_failure',
  payout_reversed: 'payout_failure',
  payout_returned: 'payout_return',
  payout_held: 'payout',
  payout_resolved: 'payout',
  crypto_payment_held: 'crypto_payment',
  crypto_payment_credited: 'crypto_payment',
  crypto_payment_returned: 'crypto_payment',
  crypto_payment_withdrawn: 'crypto_payment',
  crypto_payment_sent_back: 'crypto_payment',
  crypto_payment_written_off: 'crypto_payment',
  crypto_settlement_reserved: 'crypto_settlement',
  crypto_settlement_captured: 'crypto_settlement',
  crypto_settlement_released: 'crypto_settlement_failure',
  crypto_settlement_fee: 'crypto_settlement',
  crypto_settlement_held: 'crypto_settlement',
  crypto_settlement_resolved: 'crypto_settlement',
} as const satisfies Record<
  Exclude<EntryKind, BankEntryKind | 'made_available' | 'platform_posted'>,
  BalanceTransactionType
>;

/**
 * @returns undefined when no available balance changes
 * @param tie tie-break of its list position
 */
export function buildBalanceChange(
  entry: NewEntry,
  writtenAt: Date,
  tie: number,
): BalanceChange | undefined {
  const line = findAvailableLine(entry.lines);
  const { account_id, livemode, currency, kind, fee = 0 } = entry;
  const types: Partial<Record<EntryKind, BalanceTransactionType>> = TYPES;
  const type = types[kind];
  if (line === undefined || type === undefined) return undefined;
  const written = writtenAt.getTime();
  // By account time: later than the write where a sandbox's clock was moved.
  const isChargebackReversal = kind === 'reversed' && findSource(entry).object === 'payment';
  return {
    ...{ account_id, livemode, currency, balance_account: line.balance_account },
    type: isChargebackReversal ? 'chargeback_reversal' : type,
    position: buildPosition(livemode ? written : Math.max(written, Date.parse(entry.at)), tie),
    ...(BigInt(fee) === 0n ? {} : { fee: toStoredInteger(fee, currency) }),
  };
}

export function readChange({ lines, fee }: Pick<EntryDocument & BalanceChange, 'lines' | 'fee'>) {
  const net = toBigInt(findAvailableLine(lines)?.amount) ?? 0n;
  const exactFee = toBigInt(fee) ?? 0n;
  return { amount: net + exactFee, fee: exactFee, net };
}

/** @returns the day from which the money of a change can be used, `YYYY-MM-DD`; null: at once */
export function readDueDay({ lines }: Pick<EntryDocument, 'lines'>): string | null {
  return findAvailableLine(lines)?.day || null;
}

/** Finds the resource or act that an entry is about; for a reversal, what it reverses. */
export function findSource({ kind, resource_id: id }: { kind: string; resource_id: string }): {
  object: string;
  id: string;
} {
  if (kind === 'reversed') {
    const end = id.indexOf(':');
    return findSource({ kind: id.slice(0, end), resource_id: id.slice(end + 1) });
  }
  if (kind === 'funded') return { object: 'funding', id };
  const resource = KINDS.find((name) => kind.startsWith(`${name}_`));
  if (resource === undefined) return { object: 'adjustment', id };
  // A reversed entry may be a step of its resource, whose id has no colon.
  return { object: resource, id: id.split(':')[0] ?? id };
}

function findAvailableLine(lines: readonly { account: string; amount: unknown }[]) {
  for (const { account, amount } of lines) {
    const found = readAvailable(account);
    if (found !== undefined) return { balance_account: found.name, amount, day: found.day };
  }
  return undefined;
}
