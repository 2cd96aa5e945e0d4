import { addPending, EXACT, sumEntryLines } from '../../src/ledger/pending';
import type { Stores } from '../../src/store';

/** Balances of a book by their paths, with pending entries; minor units. */
export async function readBalances({ ledger }: Pick<Stores, 'ledger'>, book: string) {
  const { states, books } = ledger.collections;
  const bookDocument = await books.findOne({ _id: book }, EXACT);
  const pending = await states.find({ book, pending: true }, EXACT).toArray();
  const balances = addPending(bookDocument, sumEntryLines(pending));
  return (path: string): number | undefined => {
    const balance = balances.get(path);
    return balance === undefined ? undefined : Number(balance);
  };
}
