import type { ClientSession, Db } from 'mongodb';
import type { BookDocument, EntryStateDocument } from '../ledger/documents';
import { addPending, EXACT, sumPending } from '../ledger/pending';

/** Reader of a moment; the past needs no session, since entries do not change. */
export interface Reader {
  db: Db;
  session: ClientSession | undefined;
}

const BOOKS_BATCH = 1_000;

interface BookBalances {
  book: string;
  balances: ReadonlyMap<string, unknown>;
}

/** Reads in the order of books. */
export async function* readBooks({ db, session }: Reader): AsyncGenerator<BookBalances> {
  const books = db.collection<BookDocument>('ledger_books');
  const states = db.collection<EntryStateDocument>('entry_states');
  let last = '';
  while (true) {
    const stored = await books
      .find({ _id: { $gt: last } }, { session, ...EXACT })
      .sort({ _id: 1 })
      .limit(BOOKS_BATCH)
      .toArray();
    const end = stored.length < BOOKS_BATCH ? undefined : stored.at(-1)?._id;
    const range = { $gt: last, ...(end === undefined ? {} : { $lte: end }) };
    const pending = await sumPending(states, range, session);
    const byId = new Map(stored.map((book) => [book._id, book]));
    for (const book of [...new Set([...byId.keys(), ...pending.keys()])].sort()) {
      yield { book, balances: addPending(byId.get(book) ?? null, pending.get(book)) };
    }
    if (end === undefined) return;
    last = end;
  }
}

/** Sums all entries until a time; MongoDB uses the disk where it must. */
export async function* readPastBooks({ db }: Reader, at: string): AsyncGenerator<BookBalances> {
  const sums = db.collection('journal_entries').aggregate<{
    _id: { book: string; account: string };
    amount: unknown;
  }>(
    [
      { $match: { written_at: { $lte: at } } },
      { $unwind: '$lines' },
      {
        $group: {
          _id: { book: '$book', account: '$lines.account' },
          amount: { $sum: '$lines.amount' },
        },
      },
      { $sort: { _id: 1 } },
    ],
    { allowDiskUse: true, ...EXACT },
  );
  let current: { book: string; balances: Map<string, unknown> } | undefined;
  for await (const { _id, amount } of sums) {
    if (current !== undefined && current.book !== _id.book) yield current;
    if (current?.book !== _id.book) current = { book: _id.book, balances: new Map() };
    current.balances.set(_id.account, amount);
  }
  if (current !== undefined) yield current;
}
