import { EXACT, sumsOf, withOpen } from '../../src/ledger/open';
import type { Stores } from '../../src/store';

/** Balances of a book by their paths, with what it has not taken in yet; minor units. */
export async function bookNow({ ledger }: Pick<Stores, 'ledger'>, book: string) {
  const { postings, books } = ledger.collections;
  const kept = await books.findOne({ _id: book }, EXACT);
  const open = await postings.find({ book, open: true }, EXACT).toArray();
  const balances = withOpen(kept, sumsOf(open));
  return (path: string): number | undefined => {
    const balance = balances.get(path);
    return balance === undefined ? undefined : Number(balance);
  };
}
