import { deriveUuid } from '../../../base/ids';
import { NumberLiteral } from '../../../base/json';
import { ASSETS, bookCurrency, parseBookCurrency } from '../../../domain/crypto/assets';
import { buildPosition, readPositionTime } from '../../../domain/cursor';
import { Refusal } from '../../../domain/errors';
import { MAIN_BALANCE } from '../../../domain/money/money';
import type { BalanceTransactionQuery } from '../../../domain/wire/balances';
import { toBigInt } from '../../../ledger/ledger-accounts';
import type { BalanceRow, Receivable } from '../../../ledger/locks';
import { findSource, readChange, readDueDay } from '../../../ledger/pending';
import type { BalanceTransactionDocument } from '../../../store/balance-transactions';
import type { Owner, ServiceDeps } from '../../access';
import { listPage, type Page, type ProvedBalance } from '../read';

type ListDeps = Pick<ServiceDeps, 'stores'>;

/**
 * Lists changes of available balances, newest first.
 * @throws Refusal 400 for a balance account that never had funds
 * @see docs/api.md#balances
 */
export async function listBalanceTransactions(
  { stores }: ListDeps,
  caller: Owner,
  { asset, currency, ...query }: BalanceTransactionQuery,
): Promise<Page<BalanceTransactionDocument>> {
  const { balance_account: name = MAIN_BALANCE } = query;
  const { balanceTransactions } = stores;
  const { account_id, livemode } = caller;
  const isMain = name === MAIN_BALANCE;
  if (!isMain && !(await balanceTransactions.hasBalanceAccount(account_id, livemode, name))) {
    const message = 'must be a balance account that had funds';
    const details = [{ code: 'invalid', field: 'balance_account', message }];
    throw new Refusal('invalid_request', `balance_account: ${message}`, { details });
  }
  const pair = ASSETS.find((rules) => rules.asset === asset);
  // No balance is both in a currency and in an asset.
  if (pair !== undefined && currency !== undefined) {
    return { rows: [], has_more: false, next_cursor: null };
  }
  const book = pair === undefined ? currency : bookCurrency(pair);
  return await listPage(balanceTransactions, caller, query, { currency: book });
}

/** Assets come last. @see docs/api.md#balances */
export function presentBalances({
  balances,
  receivables,
}: {
  balances: readonly ProvedBalance[];
  receivables: readonly Receivable[];
}) {
  const isAsset = ({ currency }: BalanceRow) => parseBookCurrency(currency) !== undefined;
  const rows = [...balances.filter((row) => !isAsset(row)), ...balances.filter(isAsset)];
  const data = rows.map(({ balance_account, currency, proved_until, ...amounts }) => {
    const { available, reserved, pending = 0 } = amounts;
    const debt = receivables.find((row) => row.currency === currency)?.owed ?? 0;
    // Chargebacks are debited from `main`.
    const owed = balance_account === MAIN_BALANCE ? debt : 0;
    return {
      object: 'balance',
      balance_account,
      ...presentMoney(currency, { available, reserved, pending, owed }),
      proved_until,
    };
  });
  return { object: 'list', data };
}

/** @see docs/api.md#balances */
export function presentBalanceTransaction(row: BalanceTransactionDocument) {
  const { _id, type, balance_account, currency, position } = row;
  const created_at = readPositionTime(position);
  const day = readDueDay(row);
  return {
    id: `txn_${deriveUuid(_id)}`,
    object: 'balance_transaction',
    type,
    balance_account,
    ...presentMoney(currency, readChange(row)),
    available_on: day === null ? created_at : `${day}T00:00:00.000Z`,
    source: findSource(row),
    created_at,
  };
}

/** Writes integers of a currency, texts of an asset. */
function presentMoney(currency: string, amounts: Record<string, number | bigint>) {
  const pair = parseBookCurrency(currency);
  const texts = Object.entries(amounts).map(([name, amount]) => [name, String(amount)] as const);
  if (pair !== undefined) return { ...pair, ...Object.fromEntries(texts) };
  const numbers = texts.map(([name, text]) => [name, new NumberLiteral(text)] as const);
  return { currency, ...Object.fromEntries(numbers) };
}

interface BalanceKey {
  balance_account: string;
  currency: string;
}

interface StatementLine extends BalanceKey {
  /** ISO 8601, ms. */
  at: string;
  type: string;
  source: { object: string; id: string };
  /** Minor units, or an asset's smallest. */
  amount: bigint;
  fee: bigint;
  net: bigint;
  /** Available after it. */
  balance: bigint;
}

interface StatementBalance extends BalanceKey {
  opening: bigint;
  closing: bigint;
  /** Oldest first. */
  lines: StatementLine[];
}

export interface Statement {
  balances: StatementBalance[];
  /** Only the export has all lines. */
  isCut: boolean;
}

/** Per page. */
const LINES_MAX = 500;

/** @param month `YYYY-MM`, in UTC */
export async function readStatement(
  deps: ListDeps,
  owner: Owner,
  month: string,
): Promise<Statement> {
  const { sums, rows, end } = await open(deps, owner, month);
  const balances = new Map<string, StatementBalance>();
  const find = ({ balance_account, currency }: BalanceKey) => {
    const key = `${balance_account} ${currency}`;
    const fresh = { balance_account, currency, opening: 0n, closing: 0n, lines: [] };
    const balance = balances.get(key) ?? fresh;
    balances.set(key, balance);
    return balance;
  };
  for (const sum of sums)
    Object.assign(find(sum), { opening: sum.available, closing: sum.available });
  let left = LINES_MAX;
  for await (const line of rows) {
    if (left === 0) {
      const closing = await sumBefore(deps, owner, end);
      for (const sum of closing) find(sum).closing = sum.available;
      return { balances: listUsed(balances), isCut: true };
    }
    left -= 1;
    const balance = find(line);
    balance.lines.push(line);
    balance.closing = line.balance;
  }
  return { balances: listUsed(balances), isCut: false };
}

function listUsed(balances: ReadonlyMap<string, StatementBalance>): StatementBalance[] {
  return [...balances.values()].filter(
    ({ opening, closing, lines }) => opening !== 0n || closing !== 0n || lines.length > 0,
  );
}

export type ExportedLine =
  | StatementLine
  | (Pick<StatementLine, 'balance_account' | 'currency' | 'balance' | 'at'> & {
      type: 'opening' | 'closing';
    });

export async function* exportStatement(
  deps: ListDeps,
  owner: Owner,
  month: string,
): AsyncGenerator<ExportedLine> {
  const { sums, rows, since, until } = await open(deps, owner, month);
  const closing = new Map<string, Omit<StatementBalance, 'lines' | 'opening'>>();
  for (const { balance_account, currency, available: balance } of sums) {
    const key = `${balance_account} ${currency}`;
    closing.set(key, { balance_account, currency, closing: balance });
    yield { type: 'opening', balance_account, currency, at: since, balance };
  }
  for await (const line of rows) {
    const { balance_account, currency, balance } = line;
    closing.set(`${balance_account} ${currency}`, { balance_account, currency, closing: balance });
    yield line;
  }
  for (const { closing: balance, ...row } of closing.values()) {
    yield { ...row, type: 'closing', at: until, balance };
  }
}

async function open({ stores }: ListDeps, owner: Owner, month: string) {
  const first = new Date(`${month}-01T00:00:00.000Z`);
  const since = first.toISOString();
  first.setUTCMonth(first.getUTCMonth() + 1);
  const until = first.toISOString();
  const [start, end] = [buildPosition(Date.parse(since), 0), buildPosition(Date.parse(until), 0)];
  const sums = await sumBefore({ stores }, owner, start);
  const stored = stores.balanceTransactions.export(owner, { since: start, until: end });
  return { sums, rows: addBalances(stored, sums), since, until, end };
}

async function sumBefore({ stores }: ListDeps, owner: Owner, position: string) {
  const sums = await stores.balanceTransactions.sumBefore(owner, position);
  return sums.map((sum) => ({ ...sum, available: toBigInt(sum.available) ?? 0n }));
}

async function* addBalances(
  rows: AsyncIterable<BalanceTransactionDocument>,
  sums: readonly (BalanceKey & { available: bigint })[],
): AsyncGenerator<StatementLine> {
  const balances = new Map(
    sums.map((row) => [`${row.balance_account} ${row.currency}`, row.available]),
  );
  for await (const row of rows) {
    const { balance_account, currency, type, position } = row;
    const at = readPositionTime(position);
    const change = readChange(row);
    const key = `${balance_account} ${currency}`;
    const balance = (balances.get(key) ?? 0n) + change.net;
    balances.set(key, balance);
    yield { balance_account, currency, type, at, source: findSource(row), ...change, balance };
  }
}
