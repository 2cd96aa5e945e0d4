import { type ClientSession, type Db, type Document, type MongoClient, ReadConcern } from 'mongodb';
import { inSnapshot } from '../base/mongo';
import { formatCount } from '../domain/counted';
import { toEnv } from '../domain/environment';
import type { BookDocument, EntryDocument } from '../ledger/documents';
import { bookId, bookOwner } from '../ledger/entries';
import { UNMATCHED } from '../ledger/entry-lines';
import { toBigInt } from '../ledger/integers';
import { addPending, EXACT, sumPending } from '../ledger/pending';
import type { ClearingScope } from '../ledger/uncleared';
import { type BankAccountDocument, createBankAccountStore } from '../store/bank-accounts';

interface TrialBalanceRow {
  book: string;
  account: string;
  /** ISO 4217, or the book of an asset. */
  currency: string;
  balance: bigint;
}

export const FINDINGS = {
  book_unbalanced: 'the balances of a book do not sum to 0',
  in_transit: 'journal entries that no statement line matches',
  unmatched: 'statement lines that match no journal entry',
  clearing_differs: 'what neither of the two explains between merchants and a bank',
} as const satisfies Record<string, string>;

interface TrialBalanceFinding {
  code: keyof typeof FINDINGS;
  message: string;
  /** Minor units; of movements at a bank as its statement has them: above 0 comes in. */
  amount: bigint;
  currency: string;
  /** First 100 of the books, entries or lines. */
  ids: string[];
}

export interface TrialBalance {
  /** First 100,000 of them. */
  rows: TrialBalanceRow[];
  rows_total: number;
  totals: { env: 'live' | 'sandbox'; currency: string; sum: bigint }[];
  findings: TrialBalanceFinding[];
}

export interface TrialBalanceOptions {
  /** Absent: both environments. */
  livemode?: boolean | undefined;
  /** ISO 8601, ms: entries that were written until then; absent: all. */
  at?: string | undefined;
  now: () => Date;
}

/** Database at a moment; the past needs no session, since entries do not change. */
interface Reader {
  db: Db;
  session: ClientSession | undefined;
}

const ROWS_MAX = 100_000;
const IDS_MAX = 100;
const BOOKS_BATCH = 1_000;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Lists the balances of all books, and what does not agree between merchants' books and those of
 * the banks.
 * @param client has a long socket timeout
 * @see docs/ledger.md#trial-balance
 */
export async function readTrialBalance(
  client: MongoClient,
  database: string,
  options: TrialBalanceOptions,
): Promise<TrialBalance> {
  if (options.at !== undefined) {
    const db = client.db(database, { readConcern: new ReadConcern('majority') });
    return await read({ db, session: undefined }, options);
  }
  return await inSnapshot(client, database, (snapshot) => read(snapshot, options));
}

async function read(reader: Reader, options: TrialBalanceOptions): Promise<TrialBalance> {
  const { livemode } = options;
  const tally = createTally();
  const books = options.at === undefined ? readBooks(reader) : readPastBooks(reader, options.at);
  for await (const { book, balances } of books) {
    if (livemode === undefined || bookOwner(book).livemode === livemode) tally.add(book, balances);
  }
  const { rows, rows_total, totals, unbalanced, clearing } = tally.result();
  const findings = [...unbalanced];
  for (const scope of await listScopes(reader, livemode)) {
    findings.push(...(await compareScope(reader, options, scope, clearing)));
  }
  return { rows, rows_total, totals, findings };
}

interface BookBalances {
  book: string;
  balances: ReadonlyMap<string, unknown>;
}

/** Reads stored balances and pending entries, batch by batch in the order of books. */
async function* readBooks({ db, session }: Reader): AsyncGenerator<BookBalances> {
  const books = db.collection<BookDocument>('ledger_books');
  const entries = db.collection<EntryDocument>('ledger_postings');
  let last = '';
  while (true) {
    const stored = await books
      .find({ _id: { $gt: last } }, { session, ...EXACT })
      .sort({ _id: 1 })
      .limit(BOOKS_BATCH)
      .toArray();
    const end = stored.length < BOOKS_BATCH ? undefined : stored.at(-1)?._id;
    const range = { $gt: last, ...(end === undefined ? {} : { $lte: end }) };
    const pending = await sumPending(entries, range, session);
    const byId = new Map(stored.map((book) => [book._id, book]));
    for (const book of [...new Set([...byId.keys(), ...pending.keys()])].sort()) {
      yield { book, balances: addPending(byId.get(book) ?? null, pending.get(book)) };
    }
    if (end === undefined) return;
    last = end;
  }
}

/** Sums all entries until a time, which MongoDB does on disk where it must. */
async function* readPastBooks({ db }: Reader, at: string): AsyncGenerator<BookBalances> {
  const sums = db.collection('ledger_postings').aggregate<{
    _id: { book: string; account: string };
    amount: unknown;
  }>(
    [
      { $match: { written_at: { $lte: at } } },
      { $unwind: '$legs' },
      {
        $group: {
          _id: { book: '$book', account: '$legs.account' },
          amount: { $sum: '$legs.amount' },
        },
      },
      { $sort: { _id: 1 } },
    ],
    { allowDiskUse: true, ...EXACT },
  );
  let current: { book: string; balances: Map<string, unknown> } | undefined;
  for await (const { _id, amount } of sums) {
    if (current !== undefined && current.book !== _id.book) yield current;
    if (current?.book !== _id.book) current = { book: _id.book, balances: new Map() };
    current.balances.set(_id.account, amount);
  }
  if (current !== undefined) yield current;
}

function createTally() {
  const rows: TrialBalanceRow[] = [];
  const totals = new Map<string, TrialBalance['totals'][number]>();
  const unbalanced = new Map<string, TrialBalanceFinding>();
  /** Sums by connector of merchants' books, and by the id of bank books. */
  const clearing = new Map<string, bigint>();
  let rows_total = 0;

  const addTotal = (book: string, sum: bigint) => {
    const { livemode, currency } = bookOwner(book);
    const env = toEnv(livemode);
    const key = `${currency} ${env}`;
    const total = totals.get(key) ?? { env, currency, sum: 0n };
    totals.set(key, { ...total, sum: total.sum + sum });
    if (sum === 0n) return;
    const { amount = 0n, ids = [] } = unbalanced.get(key) ?? {};
    unbalanced.set(key, {
      code: 'book_unbalanced',
      message: `Books in ${env} ${currency} do not sum to 0: run ledger verify.`,
      amount: amount + sum,
      currency,
      ids: ids.length < IDS_MAX ? [...ids, book] : ids,
    });
  };

  return {
    add: (book: string, balances: ReadonlyMap<string, unknown>): void => {
      const { livemode, currency } = bookOwner(book);
      let sum = 0n;
      for (const account of [...balances.keys()].sort()) {
        const balance = toBigInt(balances.get(account)) ?? 0n;
        sum += balance;
        rows_total += 1;
        if (rows.length < ROWS_MAX) rows.push({ book, account, currency, balance });
        if (!/^clearing(\.|$)/.test(account)) continue;
        const connector = account.slice('clearing.'.length);
        const key = connector === '' ? book : scopeKey({ connector, livemode, currency });
        clearing.set(key, (clearing.get(key) ?? 0n) + balance);
      }
      addTotal(book, sum);
    },
    result: () => ({
      rows,
      rows_total,
      totals: [...totals.keys()].sort().flatMap((key) => totals.get(key) ?? []),
      unbalanced: [...unbalanced.values()],
      clearing,
    }),
  };
}

function scopeKey({ connector, livemode, currency }: ClearingScope): string {
  return `${connector} ${toEnv(livemode)} ${currency}`;
}

/** Connector, environment and currency that have bank accounts, with their books. */
interface BankScope extends ClearingScope {
  books: string[];
}

async function listScopes(
  { db, session }: Reader,
  livemode: boolean | undefined,
): Promise<readonly BankScope[]> {
  const scopes = new Map<string, BankScope>();
  const accounts = await createBankAccountStore(db).list(
    livemode === undefined ? {} : { livemode },
    session,
  );
  for (const account of accounts) {
    const key = scopeKey(account);
    const { books = [] } = scopes.get(key) ?? {};
    scopes.set(key, { ...pickScope(account), books: [...books, bankBookId(account)] });
  }
  return [...scopes.values()];
}

function pickScope({ connector, livemode, currency }: BankAccountDocument): ClearingScope {
  return { connector, livemode, currency };
}

function bankBookId({ _id: account_id, livemode, currency }: BankAccountDocument): string {
  return bookId({ account_id, livemode, currency });
}

async function compareScope(
  reader: Reader,
  options: TrialBalanceOptions,
  scope: BankScope,
  clearing: ReadonlyMap<string, bigint>,
): Promise<TrialBalanceFinding[]> {
  const { connector, livemode, currency, books } = scope;
  const place = `${connector} ${toEnv(livemode)} ${currency}`;
  const inTransit = await readInTransit(reader, options, scope);
  const unmatched = await readUnmatched(reader, options, books);
  const sum = [scopeKey(scope), ...books].reduce(
    (total, key) => total + (clearing.get(key) ?? 0n),
    0n,
  );
  const difference = sum + inTransit.amount;
  const describeAge = (day: string) => {
    const days = Math.floor((options.now().getTime() - Date.parse(day)) / DAY_MS);
    return `the oldest is of ${day}, ${formatCount(Math.max(0, days), 'day')} old`;
  };
  const findings: (TrialBalanceFinding | false)[] = [
    inTransit.count > 0 && {
      ...{ code: 'in_transit', amount: inTransit.amount, currency, ids: inTransit.ids },
      message:
        `${place}: ${formatCount(inTransit.count, 'movement')} on no statement; ` +
        `${describeAge(inTransit.oldest)}.`,
    },
    unmatched.count > 0 && {
      ...{ code: 'unmatched', amount: unmatched.amount, currency, ids: unmatched.ids },
      message:
        `${place}: ${formatCount(unmatched.count, 'statement line')} without an entry; ` +
        `${describeAge(unmatched.oldest)}.`,
    },
    difference !== 0n && {
      ...{ code: 'clearing_differs', amount: difference, currency, ids: books },
      message: `${place}: the clearing accounts of merchants and bank differ by an amount that no entry in transit explains.`,
    },
  ];
  return findings.filter((finding) => finding !== false);
}

interface Items {
  count: number;
  amount: bigint;
  /** Day of the oldest, `YYYY-MM-DD`. */
  oldest: string;
  ids: string[];
}

const NONE: Items = { count: 0, amount: 0n, oldest: '', ids: [] };

/** Summarizes documents of an `amount` and a `day`; the ids are of the oldest. */
const SUMMARY = {
  $group: {
    ...{ _id: null, count: { $sum: 1 }, amount: { $sum: '$amount' }, oldest: { $min: '$day' } },
    ids: { $topN: { n: IDS_MAX, sortBy: { day: 1, _id: 1 }, output: '$_id' } },
  },
};

async function readInTransit(
  reader: Reader,
  { at }: TrialBalanceOptions,
  { connector, livemode, currency }: ClearingScope,
): Promise<Items> {
  const scope = { livemode, currency };
  const filter =
    at === undefined
      ? { uncleared: connector, ...scope }
      : {
          ...scope,
          written_at: { $lte: at },
          $or: [{ uncleared: connector }, { cleared: connector, cleared_at: { $gt: at } }],
        };
  return await summarize(reader, [
    { $match: filter },
    { $project: { amount: '$bank_amount', day: '$bank_day' } },
  ]);
}

/** Reads the lines that are in suspense, each by the sum of its entries. */
async function readUnmatched(
  reader: Reader,
  { at }: TrialBalanceOptions,
  books: readonly string[],
): Promise<Items> {
  const until = at === undefined ? {} : { written_at: { $lte: at } };
  return await summarize(reader, [
    { $match: { book: { $in: books }, 'legs.account': UNMATCHED, ...until } },
    { $unwind: '$legs' },
    { $match: { 'legs.account': UNMATCHED } },
    {
      $group: {
        _id: '$resource_id',
        amount: { $sum: '$legs.amount' },
        day: { $min: { $substrBytes: ['$at', 0, 'YYYY-MM-DD'.length] } },
      },
    },
    { $match: { amount: { $ne: 0 } } },
  ]);
}

async function summarize({ db, session }: Reader, stages: Document[]): Promise<Items> {
  const entries = db.collection<EntryDocument>('ledger_postings');
  const options = { session, allowDiskUse: true, ...EXACT };
  const [row] = await entries
    .aggregate<{ count: unknown; amount: unknown; oldest: string; ids: string[] }>(
      [...stages, SUMMARY],
      options,
    )
    .toArray();
  if (row === undefined) return NONE;
  return { ...row, count: Number(row.count), amount: toBigInt(row.amount) ?? 0n };
}
