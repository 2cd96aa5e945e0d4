import { omitUndefined } from '../domain/defined';
import { buildBalanceChange } from './balance-changes';
import type { EntryDocument } from './documents';
import { bookId, type EntryLine, isPending, type NewEntry, operationId } from './entries';
import { assertBalanced } from './entry-lines';
import { type StoredInteger, toStoredInteger } from './integers';
import { buildBankMovement } from './uncleared';

/** Keeps lines that add up to 0: they are a balance, too. */
export function sumByBook(entries: readonly NewEntry[]): Map<string, EntryLine[]> {
  const sums = new Map<string, Map<string, bigint>>();
  for (const entry of entries) {
    const book = bookId(entry);
    const accounts = sums.get(book) ?? new Map<string, bigint>();
    sums.set(book, accounts);
    for (const { account, amount } of entry.lines) {
      accounts.set(account, (accounts.get(account) ?? 0n) + BigInt(amount));
    }
  }
  return new Map(
    [...sums].map(([book, accounts]) => [
      book,
      [...accounts].map(([account, amount]) => ({ account, amount })),
    ]),
  );
}

/** @throws RangeError when the lines do not sum to zero */
export function buildDocument(
  entry: NewEntry,
  writtenAt: Date,
  tie: number,
  cleared_at?: string,
): EntryDocument {
  const { lines, kind, resource_id, step, currency, at, value_date, note } = entry;
  assertBalanced(lines);
  const pending = isPending(entry) ? (true as const) : undefined;
  return {
    _id: operationId(entry),
    book: bookId(entry),
    ...{ kind, resource_id, at, lines: toStoredLines(lines, currency) },
    ...omitUndefined({ step, value_date, note, pending }),
    written_at: writtenAt.toISOString(),
    ...buildBankMovement(entry, cleared_at),
    ...buildBalanceChange(entry, writtenAt, tie),
  };
}

export function toStoredLines(
  lines: readonly EntryLine[],
  currency: string,
): { account: string; amount: StoredInteger }[] {
  return lines.map(({ account, amount }) => ({
    account,
    amount: toStoredInteger(amount, currency),
  }));
}
