import type { BookDocument } from './documents';
import { toBigInt } from './integers';
import { readAvailable, readClearing } from './ledger-accounts';

/** Minor units, or an asset's smallest; a bigint where a number would not be exact. */
export interface BalanceRow {
  balance_account: string;
  currency: string;
  available: number | bigint;
  reserved: number | bigint;
  /** Settled, and not available yet; absent: nothing is. */
  pending?: number;
}

export interface Receivable {
  currency: string;
  /** Minor units. */
  owed: number;
}

export function toBalanceRows(
  currency: string,
  balances: ReadonlyMap<string, unknown>,
  now: Date,
): BalanceRow[] {
  const names = [...balances.keys()].flatMap(
    (path) => /^(?:balances|due)\.([^.]+)\./.exec(path)?.[1] ?? [],
  );
  return [...new Set(names)].map((balance_account) => {
    const { come, pending } = readDue(balances, balance_account, now);
    const at = (part: string, more = 0) => {
      const stored = toBigInt(balances.get(`balances.${balance_account}.${part}`)) ?? 0n;
      const amount = stored + BigInt(more);
      return Number.isSafeInteger(Number(amount)) ? Number(amount) : amount;
    };
    const more = [...come.values()].reduce((sum, amount) => sum + amount, 0);
    const row = { available: at('available', more), reserved: at('reserved') };
    return { balance_account, currency, ...row, ...(pending === 0 ? {} : { pending }) };
  });
}

/** Reads what can be used by now, by its day, and the sum of what cannot; minor units. */
export function readDue(balances: ReadonlyMap<string, unknown>, balance: string, now: Date) {
  const today = now.toISOString().slice(0, 'YYYY-MM-DD'.length);
  const come = new Map<string, number>();
  let pending = 0;
  for (const [account, stored] of balances) {
    const { name, day = '' } = readAvailable(account) ?? {};
    const amount = Number(stored ?? 0);
    if (name !== balance || day === '' || amount === 0) continue;
    if (day <= today) come.set(day, amount);
    else pending += amount;
  }
  return { come, pending };
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
