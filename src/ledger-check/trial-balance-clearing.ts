import type { ClientSession, Collection, Db, Document } from 'mongodb';
import { computeRest } from '../domain/banks/movement';
import { announcedBefore } from '../domain/banks/statement';
import { toEnv } from '../domain/environment';
import type { FINDING_REMEDIES } from '../domain/operators/remedies';
import { formatCount } from '../domain/printable';
import { bookId, bookOwner, type EntryDocument, type EntryStateDocument } from '../ledger/entries';
import { toBigInt, UNMATCHED } from '../ledger/ledger-accounts';
import { EXACT } from '../ledger/pending';
import type { ClearingScope } from '../ledger/uncleared';
import { createBankAccountStore } from '../store/bank-accounts';
import type { MovementDocument } from '../store/movements';
import type { LineDocument } from '../store/statement-lines';
import type { RefusalDocument } from '../store/statement-refusals';

/** Reader of a moment; the past needs no session, since entries do not change. */
export interface Reader {
  db: Db;
  session: ClientSession | undefined;
}

export interface TrialBalanceFinding {
  code: Exclude<keyof typeof FINDING_REMEDIES, 'different'>;
  message: string;
  /** Minor units; of a bank's movements as its statement has them: above 0 comes in. */
  amount: bigint;
  currency: string;
  /** First 100 of the books, entries or lines. */
  ids: string[];
}

export interface TrialBalanceOptions {
  /** Absent: both environments. */
  livemode?: boolean | undefined;
  /** ISO 8601, ms: limits entries to those written until then; absent: all. */
  at?: string | undefined;
  now: () => Date;
}

export const IDS_MAX = 100;
const DAY_MS = 24 * 60 * 60_000;
const DAY = 'YYYY-MM-DD'.length;

/** Connector, environment and currency with bank accounts. */
interface BankScope extends ClearingScope {
  books: string[];
  accounts: string[];
}

export async function listScopes(
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
    const { _id: account_id, connector, livemode, currency } = account;
    const scope = scopes.get(key) ?? { connector, livemode, currency, books: [], accounts: [] };
    scope.books.push(bookId({ account_id, livemode, currency }));
    scope.accounts.push(account_id);
    scopes.set(key, scope);
  }
  return [...scopes.values()];
}

export async function compareScope(
  reader: Reader,
  options: TrialBalanceOptions,
  scope: BankScope,
  clearing: ReadonlyMap<string, bigint>,
): Promise<TrialBalanceFinding[]> {
  const { connector, livemode, currency, books } = scope;
  const place = `${connector} ${toEnv(livemode)} ${currency}`;
  const inTransit = await readInTransit(reader, options, scope);
  const unmatched = await readUnmatched(reader, options, books);
  const before = announcedBefore(options.now());
  const own = { bank_account_id: { $in: scope.accounts } };
  const tooOld = [{ $match: { ...own, status: 'announced', day: { $lt: before } } }];
  const lines = reader.db.collection<LineDocument>('statement_lines');
  // The past of notifications is not stored.
  const announced = options.at === undefined ? await summarize(reader, tooOld, lines) : NONE;
  const items = [
    { code: 'in_transit', items: inTransit, noun: 'movement', where: 'on no statement' },
    { code: 'unmatched', items: unmatched, noun: 'statement line', where: 'without an entry' },
    {
      code: 'not_repeated',
      items: announced,
      noun: 'movement',
      where: 'of a notification on no statement',
    },
  ] as const;
  const findings = items.flatMap(({ code, items: found, noun, where }): TrialBalanceFinding[] => {
    const { count, amount, ids, oldest } = found;
    if (count === 0) return [];
    const age = describeAge(oldest, options.now);
    const message = `${place}: ${formatCount(count, noun)} ${where}; ${age}.`;
    return [{ code, amount, currency, ids, message }];
  });
  if (options.at === undefined) {
    const filter = { ...own, attention: true, missing: { $type: 'object' } } as const;
    const missing = reader.db
      .collection<RefusalDocument>('statement_refusals')
      .find(filter, { session: reader.session })
      .limit(IDS_MAX);
    for await (const { message, missing: gap } of missing) {
      const ids = gap === undefined ? [] : [gap.statement];
      const finding = { code: 'statement_missing', amount: 0n, currency } as const;
      findings.push({ ...finding, message: `${place}: ${message}`, ids });
    }
  }
  const sum = [scopeKey(scope), ...books].reduce(
    (total, key) => total + (clearing.get(key) ?? 0n),
    0n,
  );
  const amount = sum + inTransit.amount;
  if (amount !== 0n) {
    const message = `${place}: the clearing accounts of merchants and bank differ by an amount that no entry in transit explains.`;
    findings.push({ code: 'clearing_differs', amount, currency, ids: books, message });
  }
  return findings;
}

function describeAge(day: string, now: () => Date): string {
  const days = Math.floor((now().getTime() - Date.parse(day)) / DAY_MS);
  return `the oldest is of ${day}, ${formatCount(Math.max(0, days), 'day')} old`;
}

/** Lists money in suspense by connector, environment and currency; the past is not stored. */
export async function readSuspense(
  { db, session }: Reader,
  { livemode, at, now }: TrialBalanceOptions,
): Promise<TrialBalanceFinding[]> {
  if (at !== undefined) return [];
  const rows = db
    .collection<MovementDocument>('bank_movements')
    .find(
      { state: 'suspense', ...(livemode === undefined ? {} : { livemode }) },
      { session, sort: { reported_at: 1, _id: 1 } },
    );
  const groups = new Map<string, { rest: bigint; oldest: MovementDocument; ids: string[] }>();
  for await (const row of rows) {
    const group = groups.get(scopeKey(row)) ?? { rest: 0n, oldest: row, ids: [] };
    // As a statement has it: above 0 came in.
    const rest = computeRest(row) * (row.direction === 'in' ? 1n : -1n);
    groups.set(scopeKey(row), { ...group, rest: group.rest + rest, ids: [...group.ids, row._id] });
  }
  return [...groups].map(([place, { rest: amount, oldest, ids }]) => ({
    ...{ code: 'suspense' as const, amount, currency: oldest.currency, ids: ids.slice(0, IDS_MAX) },
    message:
      `${place}: ${formatCount(ids.length, 'movement')} in suspense; ` +
      `${describeAge(oldest.reported_at.slice(0, DAY), now)}.`,
  }));
}

/** Finds ends of transfers whose other end is missing for too long; the past is not stored. */
export async function readTransfers(
  { db, session }: Reader,
  { livemode, at, now }: TrialBalanceOptions,
): Promise<TrialBalanceFinding[]> {
  if (at !== undefined) return [];
  const today = now().toISOString().slice(0, DAY);
  const missing = { 'transfer.other': null, 'transfer.until': { $lt: today } };
  const own = livemode === undefined ? {} : { livemode };
  const ends = db
    .collection<EntryStateDocument>('entry_states')
    .find({ transfer: { $exists: true }, ...missing, ...own }, { session, ...EXACT })
    .sort({ 'transfer.day': 1, _id: 1 });
  const groups = new Map<string, EntryStateDocument[]>();
  for await (const end of ends) groups.set(end.book, [...(groups.get(end.book) ?? []), end]);
  return [...groups].map(([book, group]) => {
    const { currency, livemode: isLive } = bookOwner(book);
    const amounts = group.map(({ bank_amount }) => toBigInt(bank_amount) ?? 0n);
    return {
      ...{ code: 'transfer_open' as const, currency },
      amount: amounts.reduce((sum, amount) => sum + amount, 0n),
      ids: group.slice(0, IDS_MAX).map(({ _id }) => _id),
      message:
        `${toEnv(isLive)} ${currency}: the other end of ${formatCount(group.length, 'transfer')} ` +
        `between own accounts is missing; ${describeAge(group[0]?.transfer?.day ?? '', now)}.`,
    };
  });
}

interface Items {
  count: number;
  amount: bigint;
  /** `YYYY-MM-DD`. */
  oldest: string;
  ids: string[];
}

const NONE: Items = { count: 0, amount: 0n, oldest: '', ids: [] };

/** Ids are of the oldest. */
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
  const states = reader.db.collection<EntryStateDocument>('entry_states');
  const stages = [{ $match: filter }, { $project: { amount: '$bank_amount', day: '$bank_day' } }];
  return await summarize(reader, stages, states);
}

/** Sums the entries of each line in suspense. */
async function readUnmatched(
  reader: Reader,
  { at }: TrialBalanceOptions,
  books: readonly string[],
): Promise<Items> {
  const until = at === undefined ? {} : { written_at: { $lte: at } };
  return await summarize(reader, [
    { $match: { book: { $in: books }, 'lines.account': UNMATCHED, ...until } },
    { $unwind: '$lines' },
    { $match: { 'lines.account': UNMATCHED } },
    {
      $group: {
        _id: '$resource_id',
        amount: { $sum: '$lines.amount' },
        day: { $min: { $substrBytes: ['$at', 0, DAY] } },
      },
    },
    { $match: { amount: { $ne: 0 } } },
  ]);
}

/** Finds what is at banks of which no account is registered; chains have no statements. */
export function findUnregistered(
  scopes: readonly BankScope[],
  clearing: ReadonlyMap<string, bigint>,
): TrialBalanceFinding[] {
  const known = new Set([...scopes.map(scopeKey), ...scopes.flatMap(({ books }) => books)]);
  return [...clearing].flatMap(([key, balance]) => {
    const [, place, currency] = /^([^ :]+ (?:live|sandbox)) ([A-Z]{3})$/.exec(key) ?? [];
    if (place === undefined || currency === undefined || known.has(key)) return [];
    const message =
      `${place} ${currency}: no bank account is registered, so that no statement proves what the ` +
      'bank holds. Register it with `bank-account add`.';
    return [{ code: 'no_bank_account', message, amount: -balance, currency, ids: [] }];
  });
}

async function summarize(
  { db, session }: Reader,
  stages: Document[],
  rows: Pick<Collection, 'aggregate'> = db.collection<EntryDocument>('journal_entries'),
): Promise<Items> {
  const options = { session, allowDiskUse: true, ...EXACT };
  const [row] = await rows
    .aggregate<{ count: unknown; amount: unknown; oldest: string; ids: string[] }>(
      [...stages, SUMMARY],
      options,
    )
    .toArray();
  if (row === undefined) return NONE;
  return { ...row, count: Number(row.count), amount: toBigInt(row.amount) ?? 0n };
}

export function scopeKey({ connector, livemode, currency }: ClearingScope): string {
  return `${connector} ${toEnv(livemode)} ${currency}`;
}
