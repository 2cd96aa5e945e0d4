import type { MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../base/mongo';
import { ServiceError } from '../../domain/errors';
import type { BalanceRow } from '../../ledger/book';
import type { EntryDocument } from '../../ledger/documents';
import { bookId, type NewEntry, operationId } from '../../ledger/entries';
import type { Stores } from '../../store';
import type { Audit, Change } from '../../store/audit';

export interface PostDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'ledger'>;
}

export type PostedBalance = BalanceRow & { operation_id: string };

/**
 * Posts a journal entry with its audit line; a repeat posts nothing.
 * @returns the balance with this name in the entry's book
 * @throws ServiceError `operation_id_used` when another entry has this id; InsufficientBalance
 */
export async function postOnce(
  { mongo, stores: { ledger }, audit }: PostDeps & { audit: Audit },
  entry: NewEntry,
  change: Pick<Change, 'act' | 'after'>,
  balance_account: string,
): Promise<PostedBalance> {
  await ledger.ensureIndexes();
  const { account_id, livemode, currency } = entry;
  const operation_id = operationId(entry);
  const empty = { balance_account, currency, available: 0, reserved: 0 };
  try {
    const row = await inTransaction(mongo, async (session) => {
      await ledger.post(entry, session);
      await audit({ ...change, account_id, livemode, target: operation_id }, session);
      return await ledger.balance(entry, balance_account, session);
    });
    return { ...(row ?? empty), operation_id };
  } catch (error) {
    const storedEntry = isDuplicateKey(error) ? await ledger.findEntry(operation_id) : null;
    if (storedEntry === null) throw error;
    if (!isSameEntry(storedEntry, entry)) throw createIdUsedFailure(storedEntry);
    const rows = await ledger.balances(account_id, livemode);
    const isOwn = (row: BalanceRow) =>
      row.balance_account === balance_account && row.currency === currency;
    return { ...(rows.find(isOwn) ?? empty), operation_id };
  }
}

function isSameEntry(storedEntry: EntryDocument, entry: NewEntry): boolean {
  const [stored, wanted] = [storedEntry.legs, entry.legs].map((lines) => formatLines(lines).join());
  return storedEntry.book === bookId(entry) && stored === wanted;
}

function createIdUsedFailure({ _id, kind, book, legs: lines, at }: EntryDocument): ServiceError {
  const linesText = formatLines(lines).join(', ');
  const noun = kind === 'funded' ? 'funding' : 'operation';
  return new ServiceError(
    'operation_id_used',
    `${_id} is the id of another ${noun}, of ${at}: ${linesText} in ${book}. Nothing was credited.`,
  );
}

function formatLines(lines: EntryDocument['legs'] | NewEntry['legs']): string[] {
  return lines.map(({ account, amount }) => `${account} ${amount}`);
}
