import { type ClientSession, type Collection, type Db, Long } from 'mongodb';
import { defined } from '../domain/defined';
import { makeIndexes, type TakeBuild } from '../mongo-indexes';
import {
  assertBalanced,
  bookId,
  InsufficientBalance,
  type Leg,
  mustNotBeNegative,
  mustNotBePositive,
  type NewPosting,
  operationId,
  type PostingKind,
  type PostingNote,
} from './postings';

/** Transaction of the ledger, never changed. Its legs sum to zero. */
export interface PostingDocument {
  /** `{kind}:{resource_id}`: each step of a resource is posted once. */
  _id: string;
  book: string;
  kind: PostingKind;
  resource_id: string;
  /** Time of the move, ISO 8601, ms; after an outage it may be long before the write. */
  at: string;
  /**
   * Time of the write by its process's clock, ISO 8601, ms: the order of postings within a book. An
   * older posting has none, and comes first. @see docs/ledger.md#checkpoints
   */
  written_at?: string;
  /** Minor units, as 64-bit integers. */
  legs: { account: string; amount: number | Long }[];
  /** Day on which the bank books it, where it says so. */
  value_date?: string;
  /** Operator who asked for it, and the reason. */
  note?: PostingNote;
}

/** Kept balances of one merchant account, environment and currency, by the paths of its legs. */
export interface BookDocument {
  /** `{account_id}:{live|sandbox}:{currency}` */
  _id: string;
  account_id: string;
  livemode: boolean;
  currency: string;
  balances?: Record<string, { available?: number | bigint; reserved?: number | bigint }>;
  clearing?: Record<string, number>;
  transit?: Record<string, number>;
  income?: Record<string, number>;
  external?: Record<string, number>;
  suspense?: Record<string, number>;
  receivable?: Record<string, number>;
}

/** Line of `balance show`; minor units, as a bigint where a number would not be exact. */
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
/** Reads 64-bit integers as they are, since a sum may exceed what a number holds exactly. */
const EXACT = { useBigInt64: true } as const;

export type LedgerStore = ReturnType<typeof createLedgerStore>;

export function createLedgerStore(db: Db, now: () => Date = () => new Date()) {
  const postings: Collection<PostingDocument> = db.collection<PostingDocument>('ledger_postings');
  const books: Collection<BookDocument> = db.collection<BookDocument>('ledger_books');
  return {
    ensureIndexes: async (later?: TakeBuild) => {
      await makeIndexes(
        postings,
        [
          { key: { book: 1, written_at: 1, _id: 1 }, name: WRITTEN },
          { key: { resource_id: 1, at: 1 }, name: 'resource' },
        ],
        later,
      );
      await makeIndexes(books, [{ key: { account_id: 1, livemode: 1 }, name: 'account' }], later);
    },
    /**
     * Writes a posting and moves its balances, last in the caller's transaction, since concurrent
     * transactions contend for the book.
     * @throws InsufficientBalance when a balance would fall below 0: let the transaction abort
     * @throws MongoServerError duplicate key when it was posted already
     */
    post: async (posting: NewPosting, session: ClientSession): Promise<void> => {
      const { legs, kind, resource_id, at, account_id, livemode, currency } = posting;
      const { value_date, note } = posting;
      assertBalanced(legs);
      const book = bookId(posting);
      const written_at = now().toISOString();
      await postings.insertOne(
        {
          _id: operationId(posting),
          ...defined({ book, kind, resource_id, at, legs: asLongs(legs), value_date, note }),
          written_at,
        },
        { session },
      );
      const taken = legs.filter(({ account, amount }) => amount < 0 && mustNotBeNegative(account));
      const enough = taken.map(({ account, amount }) => [account, { $gte: -amount }]);
      const collected = legs.filter(
        ({ account, amount }) => amount > 0 && mustNotBePositive(account),
      );
      const owed = collected.map(({ account, amount }) => [account, { $lte: -amount }]);
      const result = await books.updateOne(
        { _id: book, ...Object.fromEntries([...enough, ...owed]) },
        {
          $inc: Object.fromEntries(asLongs(legs).map(({ account, amount }) => [account, amount])),
          $setOnInsert: { account_id, livemode, currency },
        },
        // A posting that debits must not make the book.
        { session, upsert: taken.length + collected.length === 0 },
      );
      if (result.matchedCount + result.upsertedCount === 0) {
        throw new InsufficientBalance('The balance does not hold this amount.');
      }
    },
    /** Lists the named balances of an account in one environment, by name and currency. */
    balances: async (account_id: string, livemode: boolean): Promise<BalanceRow[]> => {
      const found = await books.find({ account_id, livemode }, EXACT).toArray();
      return found.flatMap(balancesOf).sort(byNameAndCurrency);
    },
    /** Finds a balance in the book of a posting, within its transaction; null: never credited. */
    balance: async (
      posting: NewPosting,
      name: string,
      session: ClientSession,
    ): Promise<BalanceRow | null> => {
      const book = await books.findOne({ _id: bookId(posting) }, { session, ...EXACT });
      const rows = book === null ? [] : balancesOf(book);
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

function asLongs(legs: readonly Leg[]): { account: string; amount: Long }[] {
  return legs.map(({ account, amount }) => ({ account, amount: Long.fromNumber(amount) }));
}

function balancesOf({ currency, balances = {} }: BookDocument): BalanceRow[] {
  return Object.entries(balances).map(([balance_account, { available = 0, reserved = 0 }]) => ({
    balance_account,
    currency,
    available: asNumber(available),
    reserved: asNumber(reserved),
  }));
}

function asNumber(amount: number | bigint): number | bigint {
  const number = Number(amount);
  return Number.isSafeInteger(number) ? number : amount;
}

function byNameAndCurrency(a: BalanceRow, b: BalanceRow): number {
  const [left, right] = [a, b].map((row) => `${row.balance_account} ${row.currency}`);
  return (left ?? '') < (right ?? '') ? -1 : 1;
}
