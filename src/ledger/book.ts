import { randomInt } from 'node:crypto';
import type { ClientSession, Collection, Db } from 'mongodb';
import { inSnapshot } from '../base/mongo';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import { TIES } from '../domain/cursor';
import { omitUndefined } from '../domain/defined';
import { buildBalanceChange } from './balance-changes';
import type { BookDocument, EntryDocument } from './documents';
import {
  bookId,
  bookOwner,
  buildBookRange,
  type EntryLine,
  InsufficientBalance,
  isPending,
  type NewEntry,
  operationId,
} from './entries';
import { assertBalanced, mustNotBeNegative, mustNotBePositive } from './entry-lines';
import { type StoredInteger, toBigInt, toStoredInteger } from './integers';
import { addPending, applyPending, EXACT, PENDING_INDEX, sumPending } from './pending';

/**
 * Balance in minor units, or in an asset's smallest; a bigint where a number would not be exact.
 */
export interface BalanceRow {
  balance_account: string;
  currency: string;
  available: number | bigint;
  reserved: number | bigint;
}

/** Debt of a merchant whose balance did not cover a chargeback. */
export interface Receivable {
  currency: string;
  /** Minor units. */
  owed: number;
}

export const WRITTEN = 'written';
export type LedgerStore = ReturnType<typeof createLedgerStore>;

export function createLedgerStore(db: Db, now: () => Date = () => new Date()) {
  const entries: Collection<EntryDocument> = db.collection<EntryDocument>('ledger_postings');
  const books: Collection<BookDocument> = db.collection<BookDocument>('ledger_books');
  // Counted from a random start: rows of one process keep their order, and those of two differ.
  let tie = randomInt(TIES);
  const getNextTie = () => {
    tie = (tie + 1) % TIES;
    return tie;
  };

  /** Adds lines to the stored balances; false when a balance would pass 0. */
  const incrementBalances = async (
    book: string,
    lines: readonly EntryLine[],
    session: ClientSession,
  ): Promise<boolean> => {
    const owner = bookOwner(book);
    const bounds = buildBounds(lines, owner.currency);
    const result = await books.updateOne(
      { _id: book, ...Object.fromEntries(bounds) },
      {
        $inc: Object.fromEntries(
          toStoredLines(lines, owner.currency).map(({ account, amount }) => [account, amount]),
        ),
        $setOnInsert: owner,
      },
      // An entry that debits must not create the book.
      { session, upsert: bounds.length === 0 },
    );
    return result.matchedCount + result.upsertedCount > 0;
  };

  const readBalances = async (book: string, session: ClientSession) => {
    const storedBook = await books.findOne({ _id: book }, { session, ...EXACT });
    return addPending(storedBook, (await sumPending(entries, book, session)).get(book));
  };

  /** Adds lines, and applies pending entries where these cover them. @throws InsufficientBalance */
  const applyLines = async (
    book: string,
    lines: readonly EntryLine[],
    session: ClientSession,
  ): Promise<void> => {
    if (await incrementBalances(book, lines, session)) return;
    // Check first: what a refused transaction has applied is lost with it.
    if (isCovered(lines, await readBalances(book, session))) {
      while ((await applyPending(entries, books, book, session)) > 0) {
        if (await incrementBalances(book, lines, session)) return;
      }
    }
    throw new InsufficientBalance('The balance does not hold this amount.');
  };

  return {
    ensureIndexes: async (missing?: MissingIndexes) => {
      await makeIndexes(
        entries,
        [
          { key: { book: 1, written_at: 1, _id: 1 }, name: WRITTEN },
          { key: { resource_id: 1, at: 1 }, name: 'resource' },
          PENDING_INDEX,
        ],
        missing,
      );
      await makeIndexes(books, [{ key: { account_id: 1, livemode: 1 }, name: 'account' }], missing);
    },
    /**
     * Posts an entry; a pending one changes no balance yet. Call it early in a transaction, since a
     * write conflict on the book then costs little.
     * @throws InsufficientBalance: let the transaction abort
     * @throws MongoServerError duplicate key: of `_id_` when it was posted already, of `position`
     *   when another process chose the same list position, and a retry chooses another
     */
    post: async (entry: NewEntry, session: ClientSession): Promise<void> => {
      await entries.insertOne(buildDocument(entry, now(), getNextTie()), { session });
      if (!isPending(entry)) await applyLines(bookId(entry), entry.legs, session);
    },
    applyPending: (book: string, session: ClientSession) =>
      applyPending(entries, books, book, session),
    balances: async (account_id: string, livemode: boolean): Promise<BalanceRow[]> => {
      const all = buildBookRange(account_id, livemode);
      const { storedBooks, pendingSums } = await inSnapshot(
        db.client,
        db.databaseName,
        async (snapshot) => {
          const { session } = snapshot;
          const books = snapshot.db.collection<BookDocument>('ledger_books');
          const entries = snapshot.db.collection<EntryDocument>('ledger_postings');
          return {
            storedBooks: await books
              .find({ account_id, livemode }, { session, ...EXACT })
              .toArray(),
            pendingSums: await sumPending(entries, all, session),
          };
        },
      );
      const booksById = new Map(storedBooks.map((book) => [book._id, book]));
      const names = new Set([...booksById.keys(), ...pendingSums.keys()]);
      const rows = [...names].flatMap((book) =>
        toBalanceRows(
          bookOwner(book).currency,
          addPending(booksById.get(book) ?? null, pendingSums.get(book)),
        ),
      );
      return rows.sort(byNameAndCurrency);
    },
    /** Finds a balance in the book of an entry; null when it was never credited. */
    balance: async (
      entry: NewEntry,
      name: string,
      session: ClientSession,
    ): Promise<BalanceRow | null> => {
      const rows = toBalanceRows(entry.currency, await readBalances(bookId(entry), session));
      return rows.find(({ balance_account }) => balance_account === name) ?? null;
    },
    receivables: async (account_id: string, livemode: boolean): Promise<Receivable[]> => {
      const rows = await books.find({ account_id, livemode }).sort({ currency: 1 }).toArray();
      return rows.flatMap(({ currency, receivable }) => {
        const owed = -(receivable?.['merchant'] ?? 0);
        return owed === 0 ? [] : [{ currency, owed }];
      });
    },
    book: (id: string) => books.findOne({ _id: id }),
    findEntry: (id: string) => entries.findOne({ _id: id }),
    forResource: (resource_id: string) =>
      entries.find({ resource_id }).sort({ at: 1 }).limit(50).toArray(),
    collections: { postings: entries, books },
  };
}

/** Builds the stored form. @throws RangeError when the lines do not sum to zero */
function buildDocument(entry: NewEntry, writtenAt: Date, tie: number): EntryDocument {
  const { legs, kind, resource_id, step, currency, at, value_date, note } = entry;
  assertBalanced(legs);
  const open = isPending(entry) ? (true as const) : undefined;
  return {
    _id: operationId(entry),
    book: bookId(entry),
    ...{ kind, resource_id, at, legs: toStoredLines(legs, currency) },
    ...omitUndefined({ step, value_date, note, open }),
    written_at: writtenAt.toISOString(),
    ...buildBalanceChange(entry, writtenAt, tie),
  };
}

function toStoredLines(
  lines: readonly EntryLine[],
  currency: string,
): { account: string; amount: StoredInteger }[] {
  return lines.map(({ account, amount }) => ({
    account,
    amount: toStoredInteger(amount, currency),
  }));
}

/** Conditions under which no balance passes 0. */
function buildBounds(lines: readonly EntryLine[], currency: string) {
  return lines.flatMap(({ account, amount }): [string, object][] => {
    const bound = toStoredInteger(-amount, currency);
    if (amount < 0 && mustNotBeNegative(account)) return [[account, { $gte: bound }]];
    if (amount > 0 && mustNotBePositive(account)) return [[account, { $lte: bound }]];
    return [];
  });
}

/** Whether balances, pending entries included, cover the lines. */
function isCovered(lines: readonly EntryLine[], balances: ReadonlyMap<string, unknown>): boolean {
  return lines.every(({ account, amount }) => {
    const after = (toBigInt(balances.get(account)) ?? 0n) + BigInt(amount);
    if (after < 0n) return !mustNotBeNegative(account);
    return after === 0n || !mustNotBePositive(account);
  });
}

function toBalanceRows(currency: string, balances: ReadonlyMap<string, unknown>): BalanceRow[] {
  const names = [...balances.keys()].flatMap(
    (path) => /^balances\.([^.]+)\./.exec(path)?.[1] ?? [],
  );
  return [...new Set(names)].map((balance_account) => {
    const at = (part: string) => asNumber(balances.get(`balances.${balance_account}.${part}`));
    return { balance_account, currency, available: at('available'), reserved: at('reserved') };
  });
}

function asNumber(balance: unknown): number | bigint {
  const amount = toBigInt(balance) ?? 0n;
  const number = Number(amount);
  return Number.isSafeInteger(number) ? number : amount;
}

function byNameAndCurrency(a: BalanceRow, b: BalanceRow): number {
  const [left, right] = [a, b].map((row) => `${row.balance_account} ${row.currency}`);
  return (left ?? '') < (right ?? '') ? -1 : 1;
}
