import { type MongoClient, ReadConcern } from 'mongodb';
import { inSnapshot } from '../base/mongo';
import { toEnv } from '../domain/environment';
import { type BookDocument, bookOwner, type EntryStateDocument } from '../ledger/entries';
import { FUNDING, readClearing, toBigInt } from '../ledger/ledger-accounts';
import { listConnectors } from '../ledger/locks';
import { addPending, EXACT, sumPending } from '../ledger/pending';
import { createBankAccountStore } from '../store/bank-accounts';
import { createProof, createStatementStore } from '../store/statements';
import {
  compareScope,
  findUnregistered,
  IDS_MAX,
  listScopes,
  type Reader,
  readSuspense,
  readTransfers,
  scopeKey,
  type TrialBalanceFinding,
  type TrialBalanceOptions,
} from './trial-balance-clearing';

interface TrialBalanceRow {
  book: string;
  account: string;
  /** ISO 4217, or the book of an asset. */
  currency: string;
  balance: bigint;
  /** Day until which statements prove a merchant's balance, `YYYY-MM-DD`; null of other rows. */
  proved_until: string | null;
}

export interface TrialBalance {
  /** First 100,000. */
  rows: TrialBalanceRow[];
  rows_total: number;
  totals: { env: 'live' | 'sandbox'; currency: string; sum: bigint }[];
  findings: TrialBalanceFinding[];
}

const ROWS_MAX = 100_000;

/**
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
  const { db, session } = reader;
  const stores = { bankAccounts: createBankAccountStore(db), statements: createStatementStore(db) };
  const live = createProof(stores, true, session);
  const sandbox = createProof(stores, false, session);
  for await (const { book, balances } of books) {
    const { livemode: isLive, currency } = bookOwner(book);
    if (livemode !== undefined && isLive !== livemode) continue;
    const prove = isLive ? live : sandbox;
    const until = options.at === undefined ? await prove(listConnectors(balances), currency) : null;
    tally.add(book, balances, until);
  }
  const { rows, rows_total, totals, unbalanced, unbanked, clearing } = tally.result();
  const findings = [...unbalanced, ...unbanked];
  const scopes = await listScopes(reader, livemode);
  findings.push(...findUnregistered(scopes, clearing));
  for (const scope of scopes) {
    findings.push(...(await compareScope(reader, options, scope, clearing)));
  }
  findings.push(...(await readTransfers(reader, options)));
  findings.push(...(await readSuspense(reader, options)));
  return { rows, rows_total, totals, findings };
}

function createTally() {
  const rows: TrialBalanceRow[] = [];
  const totals = new Map<string, TrialBalance['totals'][number]>();
  const unbalanced = new Map<string, TrialBalanceFinding>();
  /** By currency, on live. */
  const unbanked = new Map<string, TrialBalanceFinding>();
  /** Keys: connector for merchants' books, id for bank books. */
  const clearing = new Map<string, bigint>();
  let rows_total = 0;

  /** Adds a book to the finding of a key. */
  const addFinding = (
    found: Map<string, TrialBalanceFinding>,
    key: string,
    { code, message, currency }: Pick<TrialBalanceFinding, 'code' | 'message' | 'currency'>,
    { book, amount }: { book: string; amount: bigint },
  ) => {
    const before = found.get(key) ?? { code, message, amount: 0n, currency, ids: [] };
    const ids = before.ids.length < IDS_MAX ? [...before.ids, book] : before.ids;
    found.set(key, { ...before, amount: before.amount + amount, ids });
  };

  const addTotal = (book: string, amount: bigint) => {
    const { livemode, currency } = bookOwner(book);
    const env = toEnv(livemode);
    const key = `${currency} ${env}`;
    const total = totals.get(key) ?? { env, currency, sum: 0n };
    totals.set(key, { ...total, sum: total.sum + amount });
    if (amount === 0n) return;
    const message = `Books in ${env} ${currency} do not sum to 0: run ledger verify.`;
    const about = { code: 'book_unbalanced', message, currency } as const;
    addFinding(unbalanced, key, about, { book, amount });
  };

  const addUnbanked = (book: string, currency: string, amount: bigint) => {
    const message = `live ${currency}: merchants were credited what no bank has. Reverse the fundings, and repeat them with --connector and --bank-reference.`;
    const about = { code: 'funded_without_bank', message, currency } as const;
    addFinding(unbanked, currency, about, { book, amount });
  };

  return {
    add: (book: string, balances: ReadonlyMap<string, unknown>, until: string | null): void => {
      const { livemode, currency } = bookOwner(book);
      let sum = 0n;
      for (const account of [...balances.keys()].sort()) {
        const balance = toBigInt(balances.get(account)) ?? 0n;
        sum += balance;
        rows_total += 1;
        const proved_until = account.startsWith('balances.') ? until : null;
        if (rows.length < ROWS_MAX) rows.push({ book, account, currency, balance, proved_until });
        if (account === FUNDING && livemode && balance !== 0n)
          addUnbanked(book, currency, -balance);
        const connector = readClearing(account);
        if (connector === undefined && account !== 'clearing') continue;
        const key = connector === undefined ? book : scopeKey({ connector, livemode, currency });
        clearing.set(key, (clearing.get(key) ?? 0n) + balance);
      }
      addTotal(book, sum);
    },
    result: () => ({
      rows,
      rows_total,
      totals: [...totals.keys()].sort().flatMap((key) => totals.get(key) ?? []),
      unbalanced: [...unbalanced.values()],
      unbanked: [...unbanked.values()],
      clearing,
    }),
  };
}

const BOOKS_BATCH = 1_000;

interface BookBalances {
  book: string;
  balances: ReadonlyMap<string, unknown>;
}

/** Reads in the order of books. */
async function* readBooks({ db, session }: Reader): AsyncGenerator<BookBalances> {
  const books = db.collection<BookDocument>('ledger_books');
  const states = db.collection<EntryStateDocument>('entry_states');
  let last = '';
  while (true) {
    const stored = await books
      .find({ _id: { $gt: last } }, { session, ...EXACT })
      .sort({ _id: 1 })
      .limit(BOOKS_BATCH)
      .toArray();
    const end = stored.length < BOOKS_BATCH ? undefined : stored.at(-1)?._id;
    const range = { $gt: last, ...(end === undefined ? {} : { $lte: end }) };
    const pending = await sumPending(states, range, session);
    const byId = new Map(stored.map((book) => [book._id, book]));
    for (const book of [...new Set([...byId.keys(), ...pending.keys()])].sort()) {
      yield { book, balances: addPending(byId.get(book) ?? null, pending.get(book)) };
    }
    if (end === undefined) return;
    last = end;
  }
}

/** Sums all entries until a time; MongoDB uses the disk where it must. */
async function* readPastBooks({ db }: Reader, at: string): AsyncGenerator<BookBalances> {
  const sums = db.collection('journal_entries').aggregate<{
    _id: { book: string; account: string };
    amount: unknown;
  }>(
    [
      { $match: { written_at: { $lte: at } } },
      { $unwind: '$lines' },
      {
        $group: {
          _id: { book: '$book', account: '$lines.account' },
          amount: { $sum: '$lines.amount' },
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
