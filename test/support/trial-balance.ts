import type { MongoClient } from 'mongodb';
import { readTrialBalance } from '../../src/ledger-check/trial-balance';
import type { Stores } from '../../src/store';

/**
 * Rows of the trial balance of one account, without what was funded; each of its books sums to zero.
 * Names have the currency unless it is EUR, and no name of a connector.
 */
export async function readAccountRows(
  { mongo, stores }: { mongo: MongoClient; stores: Pick<Stores, 'ledger'> },
  account_id: string,
): Promise<Record<string, number>> {
  const { dbName } = stores.ledger.collections.books;
  const { rows, findings } = await readTrialBalance(mongo, dbName, { now: () => new Date() });
  expect(findings.filter(({ code }) => code === 'book_unbalanced')).toEqual([]);
  const own = rows.filter(({ book, balance }) => book.startsWith(account_id) && balance !== 0n);
  for (const book of new Set(own.map((row) => row.book))) {
    const ofBook = own.filter((row) => row.book === book);
    expect(ofBook.reduce((sum, { balance }) => sum + balance, 0n)).toBe(0n);
  }
  const named = own.map(({ account, balance, currency }) => {
    const name = account.startsWith('clearing.') ? 'clearing' : account;
    return [currency === 'EUR' ? name : `${name} ${currency}`, Number(balance)] as const;
  });
  return Object.fromEntries(named.filter(([account]) => !account.startsWith('external.funding')));
}
