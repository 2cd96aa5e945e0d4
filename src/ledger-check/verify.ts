import type { Db, MongoClient } from 'mongodb';
import { createLedgerStore } from '../ledger/book';
import { LIFECYCLES } from '../lifecycles';
import { PAYMENT } from '../store/refunds';
import { UPDATED } from '../store/resource';
import { verifyBook } from './books';
import { createCheckpointStore } from './checkpoints';
import type { Difference } from './compare';
import type { BookCheck, CheckpointBounds } from './examine';
import { compareResources, type Span } from './owners';
import { createReport } from './progress';
import { compareRelated } from './related';
import { openSnapshots } from './snapshot';

/**
 * Age from which postings are sealed: none can still appear behind them. A transaction lives for a
 * minute at most, a secondary is read while it is less than two behind, and the rest is for clocks.
 */
const SEAL_AFTER_MS = 10 * 60_000;
const SEALING: CheckpointBounds = { least: 100, most: 10_000 };
/**
 * Time before the last clean verification from which moved resources are compared again, since a
 * move bears the time at which it was decided, and an outage may delay its write.
 */
const RECHECK_MS = 24 * 60 * 60_000;

export interface VerifyOptions {
  /** Reads everything again, also what is sealed. */
  full?: boolean;
  /** Book to look at, and no other. */
  book?: string;
  now?: () => Date;
  sealing?: CheckpointBounds;
  /** Told how far it is. */
  progress?: (line: string) => void;
}

export interface Verification {
  books: number;
  postings: number;
  /** The first ones found, up to 100. */
  differences: Difference[];
  differences_total: number;
  /** Checkpoints that this run has written. */
  checkpoints_sealed: number;
}

/**
 * Recomputes every balance from the postings, and holds payments, refunds and payouts against
 * theirs. It reads many short snapshots, so a service at work does not disturb it, and reads again
 * only what is new since the last run. Killed anywhere, it leaves true checkpoints.
 * @param client client with long socket time-outs: an index may have to be made
 */
export async function verifyLedger(
  client: MongoClient,
  database: string,
  options: VerifyOptions = {},
): Promise<Verification> {
  const { full = false, now = () => new Date(), sealing = SEALING } = options;
  const db = client.db(database);
  const checkpoints = createCheckpointStore(db);
  await ensureIndexes(db);
  const inSnapshot = openSnapshots(client, database);
  const report = createReport(options.progress);
  const verifiedStore = createVerifiedStore(db);
  const began = now();
  await verifiedStore.begin(began.toISOString());
  const span: Span = { since: full ? '' : await verifiedStore.since(), until: began.toISOString() };
  const check: BookCheck = {
    inSnapshot,
    checkpoints,
    sealing,
    sealBefore: new Date(began.getTime() - SEAL_AFTER_MS),
    // No resource moves in the future: a single book compares all of its own.
    comparedSince: options.book === undefined ? span.since : '~',
    now,
    report: report.add,
    onProgress: (postings) => report.countRead({ postings }),
  };
  const result = { books: 0, postings: 0, checkpoints_sealed: 0 };
  const books = options.book === undefined ? allBooks(db) : [options.book];
  for await (const book of books) {
    const { postings, sealed, isKept } = await verifyBook(check, book, full);
    result.books += isKept ? 1 : 0;
    result.postings += postings;
    result.checkpoints_sealed += sealed;
  }
  if (options.book === undefined) {
    let isClean = true;
    for await (const { rows, differences } of compareResources(inSnapshot, span)) {
      report.add(differences);
      report.countRead({ resources: rows });
      isClean &&= differences.length === 0;
    }
    for await (const differences of compareRelated(inSnapshot, full)) report.add(differences);
    if (isClean) await verifiedStore.until(span.until);
  }
  return { ...result, ...report.result() };
}

/** Makes the indexes that it reads by, should no service of this version have made them yet. */
async function ensureIndexes(db: Db): Promise<void> {
  await createLedgerStore(db).ensureIndexes();
  await createCheckpointStore(db).ensureIndexes();
  await db.collection(LIFECYCLES.refund.collection).createIndexes([PAYMENT]);
  for (const { collection } of Object.values(LIFECYCLES)) {
    await db.collection(collection).createIndexes([UPDATED]);
  }
}

/** Notes of the verifications: when the latest began, and what was compared and did not differ. */
function createVerifiedStore(db: Db) {
  const rows = db.collection<{ _id: 'latest' | 'resources'; until: string }>('ledger_verified');
  const setUntil = (_id: 'latest' | 'resources', until: string) =>
    rows.updateOne(
      { _id },
      { $max: { until } },
      { upsert: true, writeConcern: { w: 'majority', journal: true } },
    );
  return {
    /**
     * Waits until a majority of servers has what was written so far, since a snapshot is of what
     * these have: a posting that they lacked would appear behind a checkpoint.
     */
    begin: (at: string) => setUntil('latest', at),
    /** Time since which moved resources are to be compared; empty for all. */
    since: async (): Promise<string> => {
      const row = await rows.findOne({ _id: 'resources' }, { readPreference: 'primary' });
      return row === null ? '' : new Date(Date.parse(row.until) - RECHECK_MS).toISOString();
    },
    until: (until: string) => setUntil('resources', until),
  };
}

/** Walks over the names of all books: of those kept, and of those that postings or checkpoints name. */
async function* allBooks(db: Db): AsyncGenerator<string> {
  const { books, postings } = createLedgerStore(db).collections;
  const { nextBook } = createCheckpointStore(db);
  let last = '';
  while (true) {
    const first = { sort: { book: 1 }, projection: { book: 1 } } as const;
    const next = await Promise.all([
      books.findOne({ _id: { $gt: last } }, { sort: { _id: 1 }, projection: { _id: 1 } }),
      postings.findOne({ book: { $gt: last } }, first),
      nextBook(last),
    ]);
    const [storedBook, bookEntry, checkpointBook] = next;
    const names = [storedBook?._id, bookEntry?.book, checkpointBook]
      .filter((name) => name !== undefined)
      .sort();
    const [name] = names;
    if (name === undefined) return;
    yield name;
    last = name;
  }
}
