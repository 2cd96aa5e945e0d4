import { normalizeAccount } from '../../../domain/banks/iban';
import { addDays, announcedBefore } from '../../../domain/banks/statement';
import { omitUndefined } from '../../../domain/defined';
import { ServiceError } from '../../../domain/errors';
import { formatMoney } from '../../../domain/money/money';
import type { ClearingScope, UnclearedEntry } from '../../../ledger/uncleared';
import type { BankAccountDocument } from '../../../store/bank-accounts';
import type { LineDocument } from '../../../store/statement-lines';
import type { StatementDocument } from '../../../store/statements';
import type { ServiceDeps } from '../../access';
import { pickScope, rematch } from './matching';

type ReconciliationDeps = Pick<ServiceDeps, 'mongo' | 'stores' | 'now'>;

/** A longer list is cut, and says so. */
const ROWS_MAX = 1_000;

interface Mismatch {
  code: 'not_repeated' | 'statement_missing';
  message: string;
  amount: number;
  currency: string;
  ids: string[];
}

/** Day of a bank account. */
interface Reconciliation {
  /** IBAN, or the bank's id of it. */
  account: string;
  currency: string;
  /** Null without a statement. */
  day: string | null;
  closed: boolean;
  opening: number | null;
  closing: number | null;
  /** Number of lines. */
  matched: number;
  ours_only: ShownEntry[];
  theirs_only: ShownLine[];
  different: { line: ShownLine; entry: ShownEntry }[];
  findings: Mismatch[];
  /** A list has more rows than it shows. */
  has_more: boolean;
}

interface ReconciliationQuery {
  connector: string;
  livemode: boolean;
  iban?: string | undefined;
  /** Absent: the latest with a statement. */
  day?: string | undefined;
}

/**
 * Matches open lines again, closes days that have nothing open, and shows a day of each account.
 * @throws ServiceError `bank_account_unknown`
 */
export async function reconcileAccounts(
  deps: ReconciliationDeps,
  { connector, livemode, iban, day }: ReconciliationQuery,
): Promise<Reconciliation[]> {
  const { bankAccounts } = deps.stores;
  const own = iban === undefined ? {} : { iban: normalizeAccount(iban) };
  const accounts = await bankAccounts.list({ connector, livemode, ...own });
  if (accounts.length === 0) {
    const named = iban === undefined ? 'a bank account' : `the bank account ${iban}`;
    throw new ServiceError('bank_account_unknown', `${connector} does not have ${named}.`);
  }
  const shown: Reconciliation[] = [];
  for (const account of accounts) {
    await rematch(deps, account);
    await closeDays(deps, account);
    shown.push(await showDay(deps, account, day));
  }
  return shown;
}

/** A repeat changes nothing. */
export async function closeDays(
  { stores: { ledger, statements }, now }: ReconciliationDeps,
  account: ClearingScope & Pick<BankAccountDocument, '_id'>,
): Promise<void> {
  const open = await statements.ofAccount(account._id, { closed_at: null });
  const missing = await listMissing({ statements }, account);
  const isBehind = (id: string) => missing.some((row) => row.missing?.statement === id);
  let previous: string | undefined;
  for (const day of new Set(open.map(({ to_day }) => to_day))) {
    const ids = open.filter(({ to_day }) => to_day === day).map(({ _id }) => _id);
    const query = buildDaysQuery(account, previous, day, 1);
    const isOpen =
      ids.some(isBehind) ||
      (await statements.hasOpen(ids)) ||
      (await ledger.listUncleared(query)).length > 0;
    if (isOpen) previous = day;
    else await statements.setClosed(ids, now().toISOString());
  }
}

/** Lists what neither a statement has filled nor an operator explained. */
async function listMissing(
  { statements }: Pick<ReconciliationDeps['stores'], 'statements'>,
  { _id }: Pick<BankAccountDocument, '_id'>,
) {
  return (await statements.listMissing(_id)).filter(({ attention }) => attention);
}

/** Selects entries whose day is after one open day, and not after another. */
function buildDaysQuery(
  account: ClearingScope,
  previous: string | undefined,
  day: string,
  limit: number,
) {
  const after = previous === undefined ? {} : { after: previous };
  return { ...pickScope(account), ...after, before: addDays(day, 1), limit };
}

async function showDay(
  deps: ReconciliationDeps,
  account: BankAccountDocument,
  date: string | undefined,
): Promise<Reconciliation> {
  const { ledger, statements } = deps.stores;
  const now = deps.now();
  const day = date ?? (await statements.last(account._id))?.to_day;
  const ofDay = day === undefined ? [] : await statements.ofAccount(account._id, { to_day: day });
  const ids = ofDay.map(({ _id }) => _id);
  const { matched = 0 } = await statements.countLines(ids);
  const open = await statements.listLines({ statement: { $in: ids }, status: 'open' }, ROWS_MAX);
  const closed = ofDay.length > 0 && ofDay.every(({ closed_at }) => closed_at !== null);
  const until = day ?? now.toISOString().slice(0, 10);
  const allOpen = await statements.ofAccount(account._id, { closed_at: null });
  // Entries up to this day belong to it.
  const previous = allOpen.findLast(({ to_day }) => to_day < until)?.to_day;
  const entries = closed
    ? []
    : await ledger.listUncleared(buildDaysQuery(account, previous, until, ROWS_MAX));
  const named = open.flatMap(({ different }) => different ?? []);
  const scope = pickScope(account);
  const others = await ledger.findAllUncleared(scope, { _id: named });
  const byId = new Map(others.map((entry) => [entry.entry_id, entry]));
  const pairs = open.flatMap((line) => {
    const entry = byId.get(line.different ?? '');
    return entry === undefined ? [] : [{ line, entry }];
  });
  const paired = new Set(pairs.flatMap(({ line, entry }) => [line._id, entry.entry_id]));
  const isNumbered = ofDay.every(({ sequence }) => /^\d+$/.test(sequence ?? ''));
  // A late statement of the day has come after those that follow on it.
  const sorted = ofDay.toSorted((a, b) =>
    isNumbered
      ? Number(a.sequence) - Number(b.sequence)
      : Number(a.imported_at > b.imported_at) - Number(a.imported_at < b.imported_at),
  );
  return {
    ...{ account: account.iban, currency: account.currency, day: day ?? null, closed },
    ...{ opening: sorted[0]?.opening ?? null, closing: sorted.at(-1)?.closing ?? null, matched },
    ours_only: entries
      .filter(({ entry_id }) => !paired.has(entry_id))
      .map((entry) => presentEntry(entry, now)),
    theirs_only: open.filter(({ _id }) => !paired.has(_id)).map((line) => presentLine(line, now)),
    different: pairs.map(({ line, entry }) => ({
      line: presentLine(line, now),
      entry: presentEntry(entry, now),
    })),
    findings: await listFindings(deps, account),
    has_more: open.length === ROWS_MAX || entries.length === ROWS_MAX,
  };
}

/** Lists missing statements, and announced movements that no statement has after five days. */
async function listFindings(
  { stores: { statements }, now }: ReconciliationDeps,
  account: BankAccountDocument,
): Promise<Mismatch[]> {
  const missing = (await listMissing({ statements }, account)).map((row) => ({
    code: 'statement_missing' as const,
    message: row.message,
    amount: 0,
    currency: account.currency,
    ids: row.missing === undefined ? [] : [row.missing.statement],
  }));
  const place = { before: announcedBefore(now()), limit: ROWS_MAX };
  const lines = await statements.listWaiting(account._id, 'announced', place);
  const notRepeated = lines.map(({ _id: id, amount, currency, day }) => ({
    ...{ code: 'not_repeated' as const, amount, currency, ids: [id] },
    message: `A notification announced ${formatMoney(amount, currency)} of ${day}; no statement has it.`,
  }));
  return [...missing, ...notRepeated];
}

export function combine(each: readonly Reconciliation[]) {
  const [only, ...more] = each;
  if (only === undefined || more.length === 0) return only;
  const withStatement = each.filter(({ day }) => day !== null);
  const days = [...new Set(withStatement.map(({ day }) => day))];
  return {
    ...{ account: null, currency: null, day: days.length === 1 ? (days[0] ?? null) : null },
    closed: withStatement.length > 0 && withStatement.every(({ closed }) => closed),
    ...{ opening: null, closing: null },
    matched: each.reduce((sum, { matched }) => sum + matched, 0),
    ours_only: each.flatMap(({ ours_only }) => ours_only),
    theirs_only: each.flatMap(({ theirs_only }) => theirs_only),
    different: each.flatMap(({ different }) => different),
    findings: each.flatMap(({ findings }) => findings),
    has_more: each.some(({ has_more }) => has_more),
    accounts: each,
  };
}

const DAY_MS = 86_400_000;

/** A future day counts 0. */
function countDays(day: string, now: Date): number {
  return Math.max(0, Math.floor((now.getTime() - Date.parse(day)) / DAY_MS));
}

export type ShownLine = ReturnType<typeof presentLine>;
export type ShownEntry = ReturnType<typeof presentEntry>;

export function presentLine(line: LineDocument, now: Date) {
  const { _id: id, iban: account, day, value_date, amount, currency } = line;
  const { reference, bank_reference, kind, fee, status, entries, different, owner } = line;
  const [file] = line.files ?? [];
  const { clearing, bank_fees } = line.parts;
  const isBooked = status === 'matched' || status === 'booked' || status === 'open';
  return {
    ...{ id, account, day, value_date, amount, currency, reference, bank_reference, kind, fee },
    /** Minor units in suspense. */
    unmatched: isBooked ? amount - clearing - bank_fees : 0,
    ...{ status, entries, different, age_days: countDays(day, now), owner },
    /** Names a file of payouts. */
    ...omitUndefined({ file }),
  };
}

export function presentEntry(entry: UnclearedEntry, now: Date) {
  const { entry_id, kind, resource_id: resource, amount, currency, day, bank_reference } = entry;
  const age_days = countDays(day, now);
  return { entry_id, kind, resource, amount, currency, day, bank_reference, age_days };
}

export function presentStatement(statement: StatementDocument) {
  const { _id: id, statement_id, kind, connector, livemode, iban: account } = statement;
  const { currency, from_day, to_day: day, opening, closing, lines } = statement;
  const { imported_at, completed_at, closed_at, abandoned_at, behind_gap } = statement;
  const env = livemode ? 'live' : 'sandbox';
  return {
    ...{ id, statement_id, kind, connector, env, account, currency, from_day, day },
    ...{ opening, closing, lines, imported_at, complete: completed_at !== null },
    closed: closed_at !== null,
    ...omitUndefined({ abandoned_at, behind_gap }),
  };
}
