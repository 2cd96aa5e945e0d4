import type { MongoClient } from 'mongodb';
import { LEGS } from '../postings';
import {
  type BookRow,
  compareBook,
  comparePosting,
  type Difference,
  type PostingRow,
} from './compare';
import { type Pass, pairOf, pass, type Read, theOne } from './pass';
import { RESOURCE_PASSES } from './resources';

/** Number of differences that are listed; all are counted. */
const DIFFERENCES_MAX = 100;

export interface Verification {
  books: number;
  postings: number;
  /** The first ones found, up to `DIFFERENCES_MAX`. */
  differences: Difference[];
  differences_total: number;
}

/** Check of postings by themselves; the server sends only faulty ones. */
const POSTINGS = pass<PostingRow>(
  'ledger_postings',
  [
    { $project: { kind: 1, resource_id: 1, sum: { $sum: '$legs.amount' } } },
    {
      $match: {
        $or: [
          { sum: { $ne: 0 } },
          { kind: { $nin: Object.keys(LEGS) } },
          { $expr: { $ne: ['$_id', { $concat: ['$kind', ':', '$resource_id'] }] } },
        ],
      },
    },
  ],
  comparePosting,
);

/** Check of kept balances against the sums of their legs. */
const BOOKS = pass<BookRow>(
  'ledger_postings',
  [
    { $unwind: '$legs' },
    {
      $group: {
        _id: { book: '$book', account: '$legs.account' },
        sum: { $sum: '$legs.amount' },
      },
    },
    { $project: { _id: '$_id.book', balance: { account: '$_id.account', sum: '$sum' } } },
    ...pairOf('ledger_books', [{ $project: { kept: '$$ROOT' } }], {
      kept: theOne('kept'),
      posted: { $push: '$balance' },
    }),
  ],
  compareBook,
);

const PASSES: readonly Pass[] = [POSTINGS, BOOKS, ...RESOURCE_PASSES];

/**
 * Recomputes every balance from the postings, and holds payments, refunds and payouts against
 * theirs. It reads one snapshot, so a service at work does not disturb it. The server sums up, on
 * its disk; rows are read one at a time.
 * @param client client with long socket time-outs: a pass may take minutes before its first row
 * @throws MongoServerError `SnapshotTooOld` when it takes longer than the server keeps a snapshot
 *   (five minutes by default)
 */
export async function verifyLedger(client: MongoClient, database: string): Promise<Verification> {
  const db = client.db(database);
  return await client.withSession({ snapshot: true }, async (session) => {
    const read: Read = (collection, pipeline) =>
      db.collection(collection).aggregate(pipeline, { session, allowDiskUse: true });
    const result: Verification = {
      books: await count(read, 'ledger_books'),
      postings: await count(read, 'ledger_postings'),
      differences: [],
      differences_total: 0,
    };
    for (const differences of PASSES) {
      for await (const each of differences(read)) {
        result.differences_total += 1;
        if (result.differences.length < DIFFERENCES_MAX) result.differences.push(each);
      }
    }
    return result;
  });
}

async function count(read: Read, collection: string): Promise<number> {
  for await (const row of read<{ n: number }>(collection, [{ $count: 'n' }])) return row.n;
  return 0;
}
