import type { ClientSession, Collection, Db } from 'mongodb';
import { defined } from '../domain/defined';
import { inSnapshot } from '../mongo';
import { type IndexWork, makeIndexes } from '../mongo-indexes';
import type { BookDocument, PostingDocument } from './documents';
import { integerOf, type KeptInteger, kept } from './integers';
import { assertBalanced, mustNotBeNegative, mustNotBePositive } from './legs';
import { EXACT, fold, OPEN, openSums, withOpen } from './open';
import {
  type AnyLeg,
  bookId,
  bookOwner,
  booksOf,
  InsufficientBalance,
  isOpen,
  type NewPosting,
  operationId,
  type UnitLeg,
} from './postings';

/** Balance in minor units, or a coin's smallest; a bigint where a number would not be exact. */
export interface BalanceRow {
  balance_account: string;
  currency: string;
  available: number | bigint;
  reserved: number | bigint;
}

/** Money that a merchant owes, since a balance did not hold what a bank took back. */
export interface Receivable {
  currency: string;
  /** Minor units. */
  owed: number;
}

/** Index of a book's postings in the order of their writes. */
export const WRITTEN = 'written';
export type LedgerStore = ReturnType<typeof createLedgerStore>;

export function createLedgerStore(db: Db, now: () => Date = () => new Date()) {
  const postings: Collection<PostingDocument> = db.collection<PostingDocument>('ledger_postings');
  const books: Collection<BookDocument> = db.collection<BookDocument>('ledger_books');

  /** Moves what the book keeps; false when a balance would pass 0. */
  const move = async (
    book: string,
    legs: readonly AnyLeg[],
    session: ClientSession,
  ): Promise<boolean> => {
    const owner = bookOwner(book);
    const bounds = boundsOf(legs, owner.currency);
    const result = await books.updateOne(
      { _id: book, ...Object.fromEntries(bounds) },
      {
        $inc: Object.fromEntries(
          stored(legs, owner.currency).map(({ account, amount }) => [account, amount]),
        ),
        $setOnInsert: owner,
      },
      // A posting that debits must not make the book.
      { session, upsert: bounds.length === 0 },
    );
    return result.matchedCount + result.upsertedCount > 0;
  };

  /** Balances of a book by their paths, open postings included, as the transaction sees them. */
  const balancesIn = async (book: string, session: ClientSession) => {
    const held = await books.findOne({ _id: book }, { session, ...EXACT });
    return withOpen(held, (await openSums(postings, book, session)).get(book));
  };

  /** Moves balances, and takes open postings in where these need it. @throws InsufficientBalance */
  const draw = async (
    book: string,
    legs: readonly AnyLeg[],
    session: ClientSession,
  ): Promise<void> => {
    if (await move(book, legs, session)) return;
    // Looks before it folds, since what a refusal has folded is lost with its transaction.
    if (isBorne(legs, await balancesIn(book, session))) {
      while ((await fold(postings, books, book, session)) > 0) {
        if (await move(book, legs, session)) return;
      }
    }
    throw new InsufficientBalance('The balance does not hold this amount.');
  };

  return {
    ensureIndexes: async (work?: IndexWork) => {
      await makeIndexes(
        postings,
        [
          { key: { book: 1, written_at: 1, _id: 1 }, name: WRITTEN },
          { key: { resource_id: 1, at: 1 }, name: 'resource' },
          OPEN,
        ],
        work,
      );
      await makeIndexes(books, [{ key: { account_id: 1, livemode: 1 }, name: 'account' }], work);
    },
    /**
     * Writes a posting, and moves its balances unless it is an open one, which meets no other. Last
     * in the caller's transaction, since those that debit contend for the book.
     * @throws InsufficientBalance when a balance would fall below 0: let the transaction abort
     * @throws MongoServerError duplicate key when it was posted already
     */
    post: async (posting: NewPosting, session: ClientSession): Promise<void> => {
      await postings.insertOne(documentOf(posting, now()), { session });
      if (!isOpen(posting)) await draw(bookId(posting), posting.legs, session);
    },
    /**
     * Writes postings that debit one book, none of them an open one, and moves its balances once.
     * @throws InsufficientBalance when the balances don't hold all of them
     * @throws MongoServerError duplicate key when one was posted already
     */
    postTogether: async (all: readonly NewPosting[], session: ClientSession): Promise<void> => {
      const [book, ...others] = new Set(all.map(bookId));
      if (book === undefined || others.length > 0 || all.some(isOpen)) {
        throw new RangeError('Only debits of one book are posted together.');
      }
      const written = now();
      await postings.insertMany(
        all.map((posting) => documentOf(posting, written)),
        { session },
      );
      await draw(book, summed(all.flatMap(({ legs }) => legs)), session);
    },
    /** Takes open postings of a book into its balances, in the caller's transaction. */
    fold: (book: string, session: ClientSession) => fold(postings, books, book, session),
    /** Lists the named balances of an account in one environment, by name and currency. */
    balances: async (account_id: string, livemode: boolean): Promise<BalanceRow[]> => {
      const all = booksOf(account_id, livemode);
      const { held, open } = await inSnapshot(db.client, db.databaseName, async (moment) => {
        const { session } = moment;
        const books = moment.db.collection<BookDocument>('ledger_books');
        const postings = moment.db.collection<PostingDocument>('ledger_postings');
        return {
          held: await books.find({ account_id, livemode }, { session, ...EXACT }).toArray(),
          open: await openSums(postings, all, session),
        };
      });
      const keptIn = new Map(held.map((book) => [book._id, book]));
      const names = new Set([...keptIn.keys(), ...open.keys()]);
      const rows = [...names].flatMap((book) =>
        rowsOf(bookOwner(book).currency, withOpen(keptIn.get(book) ?? null, open.get(book))),
      );
      return rows.sort(byNameAndCurrency);
    },
    /** Finds a balance in the book of a posting, within its transaction; null: never credited. */
    balance: async (
      posting: NewPosting,
      name: string,
      session: ClientSession,
    ): Promise<BalanceRow | null> => {
      const rows = rowsOf(posting.currency, await balancesIn(bookId(posting), session));
      return rows.find(({ balance_account }) => balance_account === name) ?? null;
    },
    /** Sums that the merchant owes, by currency. */
    receivables: async (account_id: string, livemode: boolean): Promise<Receivable[]> => {
      const found = await books.find({ account_id, livemode }).sort({ currency: 1 }).toArray();
      return found.flatMap(({ currency, receivable }) => {
        const owed = -(receivable?.['merchant'] ?? 0);
        return owed === 0 ? [] : [{ currency, owed }];
      });
    },
    book: (id: string) => books.findOne({ _id: id }),
    posting: (id: string) => postings.findOne({ _id: id }),
    forResource: (resource_id: string) =>
      postings.find({ resource_id }).sort({ at: 1 }).limit(50).toArray(),
    /** Both collections, for a verification that reads them in one snapshot. */
    collections: { postings, books },
  };
}

/** The document of a posting that is written now. @throws Error when its legs don't sum to zero */
function documentOf(posting: NewPosting, written: Date): PostingDocument {
  const { legs, kind, resource_id, step, currency, at, value_date, note } = posting;
  assertBalanced(legs);
  const open = isOpen(posting) ? (true as const) : undefined;
  return {
    _id: operationId(posting),
    book: bookId(posting),
    ...{ kind, resource_id, at, legs: stored(legs, currency) },
    ...defined({ step, value_date, note, open }),
    written_at: written.toISOString(),
  };
}

/** Legs with one for each account. */
function summed(legs: readonly AnyLeg[]): UnitLeg[] {
  const sums = new Map<string, bigint>();
  for (const { account, amount } of legs) {
    sums.set(account, (sums.get(account) ?? 0n) + BigInt(amount));
  }
  return [...sums].map(([account, amount]) => ({ account, amount }));
}

function stored(
  legs: readonly AnyLeg[],
  currency: string,
): { account: string; amount: KeptInteger }[] {
  return legs.map(({ account, amount }) => ({ account, amount: kept(amount, currency) }));
}

/** Conditions under which the legs may be moved: no balance passes 0. */
function boundsOf(legs: readonly AnyLeg[], currency: string) {
  const taken = legs.filter(({ account, amount }) => amount < 0 && mustNotBeNegative(account));
  const collected = legs.filter(({ account, amount }) => amount > 0 && mustNotBePositive(account));
  return [
    ...taken.map(({ account, amount }) => [account, { $gte: kept(-amount, currency) }]),
    ...collected.map(({ account, amount }) => [account, { $lte: kept(-amount, currency) }]),
  ];
}

/** Whether balances bear the legs, once what is open is taken in. */
function isBorne(legs: readonly AnyLeg[], balances: ReadonlyMap<string, unknown>): boolean {
  return legs.every(({ account, amount }) => {
    const after = (integerOf(balances.get(account)) ?? 0n) + BigInt(amount);
    if (after < 0n) return !mustNotBeNegative(account);
    return after === 0n || !mustNotBePositive(account);
  });
}

function rowsOf(currency: string, balances: ReadonlyMap<string, unknown>): BalanceRow[] {
  const names = [...balances.keys()].flatMap(
    (path) => /^balances\.([^.]+)\./.exec(path)?.[1] ?? [],
  );
  return [...new Set(names)].map((balance_account) => {
    const at = (part: string) => asNumber(balances.get(`balances.${balance_account}.${part}`));
    return { balance_account, currency, available: at('available'), reserved: at('reserved') };
  });
}

function asNumber(balance: unknown): number | bigint {
  const amount = integerOf(balance) ?? 0n;
  const number = Number(amount);
  return Number.isSafeInteger(number) ? number : amount;
}

function byNameAndCurrency(a: BalanceRow, b: BalanceRow): number {
  const [left, right] = [a, b].map((row) => `${row.balance_account} ${row.currency}`);
  return (left ?? '') < (right ?? '') ? -1 : 1;
}
