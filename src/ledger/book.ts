import { randomInt, randomUUID } from 'node:crypto';
import type { ClientSession, Collection, Db } from 'mongodb';
import { inSnapshot } from '../base/mongo';
import { type MissingIndexes, makeIndexes, makeValidator } from '../base/mongo-indexes';
import { TIES } from '../domain/cursor';
import { omitUndefined } from '../domain/defined';
import {
  type BookDocument,
  bookId,
  bookOwner,
  buildBookRange,
  type EntryDocument,
  type EntryLine,
  type EntryStateDocument,
  isPending,
  type NewEntry,
  operationId,
} from './entries';
import { assertBalanced, ENTRY_LINES, mergeLines } from './entry-lines';
import {
  BOOK_VALIDATOR,
  ENTRY_VALIDATOR,
  orRefused,
  RECEIVABLE,
  readAvailable,
  type StoredInteger,
  toStoredInteger,
  UNMATCHED,
} from './ledger-accounts';
import {
  type Applied,
  type BalanceRow,
  buildBounds,
  buildDebtBound,
  byNameAndCurrency,
  InsufficientBalance,
  isCovered,
  listConnectors,
  readDue,
  readOwed,
  toBalanceRows,
  toReceivables,
} from './locks';
import {
  addPending,
  applyPending,
  buildBalanceChange,
  EXACT,
  PENDING_INDEX,
  sumPending,
} from './pending';
import {
  buildBankFacts,
  createTransfers,
  createUncleared,
  findClearing,
  TRANSFER_INDEX,
  UNCLEARED_INDEXES,
} from './uncleared';

export const WRITTEN = 'written';

const OWING_INDEX = {
  key: { _id: 1, [RECEIVABLE]: 1 },
  name: 'owing',
  partialFilterExpression: { [RECEIVABLE]: { $lt: 0 } },
} as const;

type BookOwner = Pick<NewEntry, 'account_id' | 'livemode' | 'currency'>;

export type LedgerStore = ReturnType<typeof createLedgerStore>;

export function createLedgerStore(db: Db, now: () => Date = () => new Date()) {
  const entries: Collection<EntryDocument> = db.collection<EntryDocument>('journal_entries');
  const states: Collection<EntryStateDocument> = db.collection<EntryStateDocument>('entry_states');
  const books: Collection<BookDocument> = db.collection<BookDocument>('ledger_books');
  // From a random start: rows of one process keep their order, and those of two differ.
  let tie = randomInt(TIES);
  const getNextTie = () => {
    tie = (tie + 1) % TIES;
    return tie;
  };

  const uncleared = createUncleared(states, now);

  /** @returns false when a balance would pass its limit */
  const incrementBalances = async (
    book: string,
    { lines, owed_max }: Applied,
    session: ClientSession,
  ): Promise<boolean> => {
    const owner = bookOwner(book);
    const bounds = [...buildBounds(lines, owner.currency), ...buildDebtBound(owed_max)];
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
    return addPending(storedBook, (await sumPending(states, book, session)).get(book));
  };

  /** @returns also what is owed, in minor units */
  const readRow = async (owner: BookOwner, name: string, session: ClientSession) => {
    const balances = await readBalances(bookId(owner), session);
    const rows = toBalanceRows(owner.currency, balances, now());
    const row = rows.find(({ balance_account }) => balance_account === name) ?? null;
    return { row, owed: readOwed(balances) };
  };

  /** Applies pending entries where these cover the lines. */
  const applyLines = async (
    book: string,
    entry: Applied,
    session: ClientSession,
  ): Promise<void> => {
    if (await incrementBalances(book, entry, session)) return;
    const balances = await readBalances(book, session);
    const come = readCome(balances, entry.lines);
    // Check first: what a refused transaction has applied is lost with it.
    const isOwable = readOwed(balances) <= (entry.owed_max ?? Infinity);
    if (isOwable && isCovered(mergeLines([...entry.lines, ...come.flat()]), balances)) {
      while ((await applyPending(states, books, book, session)) > 0) {
        if (await incrementBalances(book, entry, session)) return;
      }
      for (const lines of come) await makeAvailable(book, lines, session);
      if (come.length > 0 && (await incrementBalances(book, entry, session))) return;
    }
    throw new InsufficientBalance('The balance does not hold this amount.');
  };

  /** Builds the lines by which what a debit can use by now becomes available. */
  const readCome = (balances: ReadonlyMap<string, unknown>, lines: Applied['lines']) =>
    lines.flatMap(({ account, amount }) => {
      const { name, day } = readAvailable(account) ?? {};
      if (name === undefined || day !== '' || amount >= 0) return [];
      const { come } = readDue(balances, name, now());
      return come.size === 0 ? [] : [ENTRY_LINES.made_available(name, come)];
    });

  const makeAvailable = (book: string, lines: EntryLine[], session: ClientSession) =>
    post(
      {
        ...{ kind: 'made_available', resource_id: randomUUID(), ...bookOwner(book) },
        ...{ at: now().toISOString(), lines },
      },
      session,
    );

  const readOwner = async (account_id: string, livemode: boolean) => {
    const all = buildBookRange(account_id, livemode);
    const { storedBooks, pendingSums } = await inSnapshot(
      db.client,
      db.databaseName,
      async (snapshot) => {
        const { session } = snapshot;
        const books = snapshot.db.collection<BookDocument>('ledger_books');
        const states = snapshot.db.collection<EntryStateDocument>('entry_states');
        return {
          storedBooks: await books.find({ account_id, livemode }, { session, ...EXACT }).toArray(),
          pendingSums: await sumPending(states, all, session),
        };
      },
    );
    const booksById = new Map(storedBooks.map((book) => [book._id, book]));
    const names = new Set([...booksById.keys(), ...pendingSums.keys()]);
    const allBalances = [...names].map((book) => ({
      currency: bookOwner(book).currency,
      balances: addPending(booksById.get(book) ?? null, pendingSums.get(book)),
    }));
    const balances = allBalances.flatMap((each) =>
      toBalanceRows(each.currency, each.balances, now()),
    );
    return {
      balances: balances.sort(byNameAndCurrency),
      receivables: toReceivables(storedBooks),
      /** By currency. */
      connectors: new Map(
        allBalances.map((each) => [each.currency, listConnectors(each.balances)]),
      ),
    };
  };

  const post = async (entry: NewEntry, session: ClientSession): Promise<void> => {
    const { offsets } = entry;
    const cleared_at = offsets && (await uncleared.offset(offsets, session));
    const document = buildDocument(entry, now(), getNextTie());
    await orRefused(entry.kind, async () => {
      await entries.insertOne(document, { session });
      const state = buildState(entry, document, cleared_at);
      if (state !== undefined) await states.insertOne(state, { session });
      if (!isPending(entry)) await applyLines(bookId(entry), entry, session);
    });
  };

  return {
    ensureIndexes: async (missing?: MissingIndexes) => {
      await makeValidator(db, 'journal_entries', ENTRY_VALIDATOR, missing);
      await makeValidator(db, 'ledger_books', BOOK_VALIDATOR, missing);
      await makeIndexes(
        entries,
        [
          { key: { book: 1, written_at: 1, _id: 1 }, name: WRITTEN },
          { key: { resource_id: 1, at: 1 }, name: 'resource' },
          {
            key: { book: 1, resource_id: 1 },
            name: 'unmatched',
            partialFilterExpression: { 'lines.account': UNMATCHED },
          },
        ],
        missing,
      );
      await makeIndexes(states, [PENDING_INDEX, TRANSFER_INDEX, ...UNCLEARED_INDEXES], missing);
      await makeIndexes(
        books,
        [{ key: { account_id: 1, livemode: 1 }, name: 'account' }, OWING_INDEX],
        missing,
      );
    },
    /**
     * Posts an entry. Call it early in a transaction: a write conflict on the book then costs
     * little.
     * @throws InsufficientBalance: let the transaction abort
     * @throws MongoServerError duplicate key: of `_id_` when it was posted already; of `position`
     * when another process chose it, and a retry chooses another
     * @throws BooksRefused
     */
    post,
    /**
     * Collects as much of the debt as the balance holds.
     * @returns minor units
     * @see docs/ledger.md#money-that-goes-wrong
     */
    collectDebt: async (
      owner: BookOwner,
      balance_account: string,
      at: string,
      session: ClientSession,
    ): Promise<number> => {
      const { row, owed } = await readRow(owner, balance_account, session);
      const amount = Math.min(owed, Number(row?.available ?? 0));
      if (amount <= 0) return 0;
      const lines = ENTRY_LINES.debt_collected(balance_account, amount);
      const entry = { kind: 'debt_collected', resource_id: randomUUID(), at, lines } as const;
      await post({ ...entry, ...owner }, session);
      return amount;
    },
    /**
     * Lists books after `after` of merchants who owe and have received money since.
     * @returns also the last book that it looked at, where there may be more
     */
    listCollectable: async (livemode: boolean, after: string, limit: number) => {
      const owing = await books
        .find(
          { _id: { $gt: after }, [RECEIVABLE]: { $lt: 0 }, livemode },
          { projection: { balances: 1, due: 1 } },
        )
        .hint(OWING_INDEX.name)
        .sort({ _id: 1 })
        .limit(limit)
        .toArray();
      const ids = owing.map(({ _id }) => _id);
      if (ids.length === 0) return { books: [], last: undefined };
      const pending = await states.distinct('book', { book: { $in: ids }, pending: true });
      const today = now().toISOString().slice(0, 10);
      const rich = owing.filter(
        ({ balances, due = {} }) =>
          Number(balances?.['main']?.available ?? 0) > 0 ||
          Object.entries(due['main'] ?? {}).some(([day, amount]) => day <= today && amount > 0),
      );
      const found = [...new Set([...rich.map(({ _id }) => _id), ...pending])];
      return { books: found, last: ids.length < limit ? undefined : ids.at(-1) };
    },
    /**
     * Posts entries of a bank account, whose balances have no bounds, in one write.
     * @throws MongoServerError duplicate key when one was posted already; BooksRefused
     */
    postAll: async (posted: readonly NewEntry[], session: ClientSession): Promise<void> => {
      const documents = posted.map((entry) => buildDocument(entry, now(), getNextTie()));
      if (documents.length === 0) return;
      const kinds = [...new Set(documents.map(({ kind }) => kind))];
      await orRefused(kinds.join(', '), async () => {
        await entries.insertMany(documents, { session });
        for (const [book, lines] of sumByBook(posted)) await applyLines(book, { lines }, session);
      });
    },
    ...uncleared,
    ...createTransfers(states, now),
    /** @throws BooksRefused */
    applyPending: (book: string, session: ClientSession) =>
      orRefused('pending entries', () => applyPending(states, books, book, session)),
    balances: async (account_id: string, livemode: boolean): Promise<BalanceRow[]> =>
      (await readOwner(account_id, livemode)).balances,
    /** Reads all at one moment. */
    balancesAndReceivables: readOwner,
    /** @returns null when the balance was never credited */
    balance: async (owner: BookOwner, name: string, session: ClientSession) =>
      (await readRow(owner, name, session)).row,
    book: (id: string) => books.findOne({ _id: id }),
    findEntry: (id: string) => entries.findOne({ _id: id }),
    forResource: (resource_id: string) =>
      entries.find({ resource_id }).sort({ at: 1 }).limit(50).toArray(),
    collections: { entries, states, books },
  };
}

/** Keeps lines that add up to 0: they are a balance, too. */
export function sumByBook(entries: readonly NewEntry[]): Map<string, EntryLine[]> {
  const sums = new Map<string, EntryLine[]>();
  for (const entry of entries) {
    const exact = entry.lines.map(({ account, amount }) => ({ account, amount: BigInt(amount) }));
    const book = bookId(entry);
    sums.set(book, mergeLines([...(sums.get(book) ?? []), ...exact]));
  }
  return sums;
}

/** @throws RangeError when the lines do not sum to zero */
function buildDocument(entry: NewEntry, writtenAt: Date, tie: number): EntryDocument {
  const { lines, kind, resource_id, step, currency, at, value_date, note } = entry;
  assertBalanced(lines);
  return {
    _id: operationId(entry),
    book: bookId(entry),
    ...{ kind, resource_id, at, lines: toStoredLines(lines, currency) },
    ...omitUndefined({ step, value_date, note }),
    written_at: writtenAt.toISOString(),
    ...buildBankFacts(entry),
    ...buildBalanceChange(entry, writtenAt, tie),
  };
}

/**
 * @param cleared_at time at which it is cleared at once; absent: it is not
 * @returns undefined where nothing of the entry ever changes
 */
function buildState(
  entry: NewEntry,
  { _id, book, written_at, kind, resource_id, at, lines, ...document }: EntryDocument,
  cleared_at: string | undefined,
): EntryStateDocument | undefined {
  const { bank_day, bank_amount, bank_reference } = document;
  const { livemode, currency } = entry;
  const isAwaited = bank_day !== undefined;
  if (!isAwaited && !isPending(entry)) return undefined;
  const connector = findClearing(entry.lines)?.connector ?? '';
  return {
    ...{ _id, book, written_at },
    ...(isPending(entry) ? { pending: true, lines } : {}),
    ...(isAwaited
      ? {
          ...(cleared_at === undefined
            ? { uncleared: connector }
            : { cleared: connector, cleared_at }),
          ...{ livemode, currency, kind, resource_id, at, bank_day },
          ...omitUndefined({ bank_amount, bank_reference }),
          ...(entry.transfer && { transfer: { ...entry.transfer, other: null } }),
        }
      : {}),
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
