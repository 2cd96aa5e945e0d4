import { buildPosition, readPositionTime } from '../../../domain/cursor';
import { findSource, readChange } from '../../../ledger/balance-changes';
import { toBigInt } from '../../../ledger/integers';
import type { Owner, ServiceDeps } from '../../deps';

interface BalanceKey {
  balance_account: string;
  currency: string;
}

export interface StatementLine extends BalanceKey {
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

export interface StatementBalance extends BalanceKey {
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

type StatementDeps = Pick<ServiceDeps, 'stores'>;

/** Per page. */
const LINES_MAX = 500;

/** @param month `YYYY-MM`, in UTC */
export async function readStatement(
  deps: StatementDeps,
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
  deps: StatementDeps,
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

async function open({ stores }: StatementDeps, owner: Owner, month: string) {
  const first = new Date(`${month}-01T00:00:00.000Z`);
  const since = first.toISOString();
  first.setUTCMonth(first.getUTCMonth() + 1);
  const until = first.toISOString();
  const [start, end] = [buildPosition(Date.parse(since), 0), buildPosition(Date.parse(until), 0)];
  const sums = await sumBefore({ stores }, owner, start);
  const stored = stores.balanceTransactions.export(owner, { since: start, until: end });
  return { sums, rows: addBalances(stored, sums), since, until, end };
}

async function sumBefore({ stores }: StatementDeps, owner: Owner, position: string) {
  const sums = await stores.balanceTransactions.sumBefore(owner, position);
  return sums.map((sum) => ({ ...sum, available: toBigInt(sum.available) ?? 0n }));
}

async function* addBalances(
  rows: ReturnType<StatementDeps['stores']['balanceTransactions']['export']>,
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
