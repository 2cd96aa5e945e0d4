import type { BookDocument } from './documents';
import { toBigInt } from './integers';
import { readClearing } from './ledger-accounts';

/** Minor units, or an asset's smallest; a bigint where a number would not be exact. */
export interface BalanceRow {
  balance_account: string;
  currency: string;
  available: number | bigint;
  reserved: number | bigint;
}

export interface Receivable {
  currency: string;
  /** Minor units. */
  owed: number;
}

export function toBalanceRows(
  currency: string,
  balances: ReadonlyMap<string, unknown>,
): BalanceRow[] {
  const names = [...balances.keys()].flatMap(
    (path) => /^balances\.([^.]+)\./.exec(path)?.[1] ?? [],
  );
  return [...new Set(names)].map((balance_account) => {
    const at = (part: string) => {
      const amount = toBigInt(balances.get(`balances.${balance_account}.${part}`)) ?? 0n;
      return Number.isSafeInteger(Number(amount)) ? Number(amount) : amount;
    };
    return { balance_account, currency, available: at('available'), reserved: at('reserved') };
  });
}

/** Lists connectors that have moved money of a book. */
export function listConnectors(balances: ReadonlyMap<string, unknown>): string[] {
  return [...balances.keys()].flatMap((account) => readClearing(account) ?? []);
}

export function toReceivables(
  books: readonly Pick<BookDocument, 'currency' | 'receivable'>[],
): Receivable[] {
  const rows = books.flatMap(({ currency, receivable }) => {
    const owed = -Number(receivable?.['merchant'] ?? 0);
    return owed === 0 ? [] : [{ currency, owed }];
  });
  return rows.sort((a, b) => (a.currency < b.currency ? -1 : 1));
}

export function byNameAndCurrency(a: BalanceRow, b: BalanceRow): number {
  const [left, right] = [a, b].map((row) => `${row.balance_account} ${row.currency}`);
  return (left ?? '') < (right ?? '') ? -1 : 1;
}
