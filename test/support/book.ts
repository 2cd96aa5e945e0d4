import { Long } from 'mongodb';
import { addPending, EXACT, sumEntryLines } from '../../src/ledger/pending';
import type { Stores } from '../../src/store';

/**
 * Takes a balance of a book beyond its bound, so that MongoDB refuses the next write to it.
 * @returns corrects it
 */
export async function breakBook({ ledger }: Pick<Stores, 'ledger'>, _id: string) {
  const { books } = ledger.collections;
  const path = 'suspense.deposits';
  const broken = { $set: { [path]: Long.fromNumber(-1) } };
  await books.updateOne({ _id }, broken, { upsert: true, bypassDocumentValidation: true });
  return () => books.updateOne({ _id }, { $unset: { [path]: '' } });
}

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
