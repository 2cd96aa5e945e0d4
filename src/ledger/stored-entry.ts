import { omitUndefined } from '../domain/defined';
import { buildBalanceChange } from './balance-changes';
import type { EntryDocument, EntryStateDocument } from './documents';
import { bookId, type EntryLine, isPending, type NewEntry, operationId } from './entries';
import { assertBalanced } from './entry-lines';
import { type StoredInteger, toStoredInteger } from './integers';
import { buildBankFacts, findClearing } from './uncleared';

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
export function buildDocument(entry: NewEntry, writtenAt: Date, tie: number): EntryDocument {
  const { lines, kind, resource_id, step, currency, at, value_date, note } = entry;
  assertBalanced(lines);
  return {
    _id: operationId(entry),
    book: bookId(entry),
    ...{ kind, resource_id, at, lines: toStoredLines(lines, currency) },
    ...omitUndefined({ step, value_date, note }),
    written_at: writtenAt.toISOString(),
    ...buildBankFacts(entry),
    ...buildBalanceChange(entry, writtenAt, tie),
  };
}

/**
 * @param cleared_at time at which it is cleared at once; absent: it is not
 * @returns undefined where nothing of the entry ever changes
 */
export function buildState(
  entry: NewEntry,
  { _id, book, written_at, kind, resource_id, at, lines, ...document }: EntryDocument,
  cleared_at: string | undefined,
): EntryStateDocument | undefined {
  const { bank_day, bank_amount, bank_reference } = document;
  const { livemode, currency } = entry;
  const isAwaited = bank_day !== undefined;
  if (!isAwaited && !isPending(entry)) return undefined;
  const connector = findClearing(entry.lines)?.connector ?? '';
  return {
    ...{ _id, book, written_at },
    ...(isPending(entry) ? { pending: true, lines } : {}),
    ...(isAwaited
      ? {
          ...(cleared_at === undefined
            ? { uncleared: connector }
            : { cleared: connector, cleared_at }),
          ...{ livemode, currency, kind, resource_id, at, bank_day },
          ...omitUndefined({ bank_amount, bank_reference }),
          ...(entry.transfer && { transfer: { ...entry.transfer, other: null } }),
        }
      : {}),
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
