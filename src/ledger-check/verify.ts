import type { Db, MongoClient } from 'mongodb';
import { KINDS, RESOURCES } from '../domain/resources';
import { createRecipient } from '../domain/wire/recipients';
import { createLedgerStore } from '../ledger/book';
import { LIFECYCLES } from '../lifecycles';
import { UPDATED } from '../store/list';
import { PAYMENT } from '../store/refunds';
import { type BookCheck, type CheckpointSize, verifyBook } from './books';
import { createCheckpointStore } from './checkpoints';
import { type Difference, difference } from './compare';
import { compareResources, type Span } from './resources/index';
import { type InSnapshot, openSnapshots, type Read, readAll } from './snapshot';

/**
 * Entries are checkpointed at an age at which none may appear among them: a transaction lasts a
 * minute at most, a secondary lags less than two, and the rest is for clocks.
 */
const CHECKPOINT_AFTER_MS = 10 * 60_000;
const CHECKPOINT_SIZE: CheckpointSize = { least: 100, most: 10_000 };
/**
 * Overlap with the last clean verification: a transition bears the time of its decision, and an
 * outage may delay its write.
 */
const RECHECK_MS = 24 * 60 * 60_000;

export interface VerifyOptions {
  full?: boolean;
  book?: string;
  /** Whether `migrate` has created the service's indexes, which a worker may not. */
  isMigrated?: boolean;
  now?: () => Date;
  checkpointSize?: CheckpointSize;
  progress?: (line: string) => void;
}

export interface Verification {
  books: number;
  postings: number;
  /** First 100. */
  differences: Difference[];
  differences_total: number;
  checkpoints_sealed: number;
}

/**
 * Recomputes every balance from its entries, and compares resources with theirs. The service may
 * run meanwhile, and a kill leaves valid checkpoints.
 * @param client has no socket timeout, since an index may be built
 */
export async function verifyLedger(
  client: MongoClient,
  database: string,
  options: VerifyOptions = {},
): Promise<Verification> {
  const { full = false, now = () => new Date(), checkpointSize = CHECKPOINT_SIZE } = options;
  const db = client.db(database);
  const checkpoints = createCheckpointStore(db);
  if (options.isMigrated) await checkpoints.ensureIndexes();
  else await ensureIndexes(db);
  const inSnapshot = openSnapshots(client, database);
  const report = createReport(options.progress);
  const verifiedStore = createVerifiedStore(db);
  const began = now();
  await verifiedStore.begin(began.toISOString());
  const span: Span = { since: full ? '' : await verifiedStore.since(), until: began.toISOString() };
  const check: BookCheck = {
    inSnapshot,
    checkpoints,
    checkpointSize,
    checkpointBefore: new Date(began.getTime() - CHECKPOINT_AFTER_MS),
    // No resource changes in the future: a single book compares all of its own.
    comparedSince: options.book === undefined ? span.since : '~',
    now,
    report: report.add,
    onProgress: (entries) => report.countRead({ entries }),
  };
  const result = { books: 0, postings: 0, checkpoints_sealed: 0 };
  const books = options.book === undefined ? allBooks(db) : [options.book];
  for await (const book of books) {
    const { entries, checkpointCount, isStored } = await verifyBook(check, book, full);
    result.books += isStored ? 1 : 0;
    result.postings += entries;
    result.checkpoints_sealed += checkpointCount;
  }
  if (options.book === undefined) {
    let isClean = true;
    for await (const { rows, differences } of compareResources(inSnapshot, span)) {
      report.add(differences);
      report.countRead({ resources: rows });
      isClean &&= differences.length === 0;
    }
    for await (const differences of comparePages(inSnapshot, RECORDS)) report.add(differences);
    if (full) {
      for await (const differences of comparePages(inSnapshot, EVENTS)) report.add(differences);
    }
    if (isClean) await verifiedStore.until(span.until);
  }
  return { ...result, ...report.result() };
}

async function ensureIndexes(db: Db): Promise<void> {
  await createLedgerStore(db).ensureIndexes();
  await createCheckpointStore(db).ensureIndexes();
  await db.collection(LIFECYCLES.refund.collection).createIndexes([PAYMENT]);
  for (const { collection } of Object.values(LIFECYCLES)) {
    await db.collection(collection).createIndexes([UPDATED]);
  }
}

/** Start of the latest verification, and what was compared without a difference. */
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
     * Waits until a majority has all earlier writes. A snapshot reads only these, so a later entry
     * would be missing from a checkpoint.
     */
    begin: (at: string) => setUntil('latest', at),
    /** Resources changed since must be compared; empty for all. */
    since: async (): Promise<string> => {
      const row = await rows.findOne({ _id: 'resources' }, { readPreference: 'primary' });
      return row === null ? '' : new Date(Date.parse(row.until) - RECHECK_MS).toISOString();
    },
    until: (until: string) => setUntil('resources', until),
  };
}

async function* allBooks(db: Db): AsyncGenerator<string> {
  const { books, entries } = createLedgerStore(db).collections;
  const { nextBook } = createCheckpointStore(db);
  let last = '';
  while (true) {
    const first = { sort: { book: 1 }, projection: { book: 1 } } as const;
    const next = await Promise.all([
      books.findOne({ _id: { $gt: last } }, { sort: { _id: 1 }, projection: { _id: 1 } }),
      entries.findOne({ book: { $gt: last } }, first),
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

/** All are counted. */
const DIFFERENCES_MAX = 100;
/** Remembered, since one may be found from two sides. */
const SEEN_MAX = 10_000;
const PROGRESS_EVERY_MS = 5_000;

function createReport(progress: (line: string) => void = () => {}) {
  const differences: Difference[] = [];
  const seen = new Set<string>();
  let total = 0;
  const counts = { entries: 0, resources: 0 };
  let reportedAt = performance.now();
  return {
    add: (findings: readonly Difference[]): void => {
      for (const each of findings) {
        const name = JSON.stringify(each);
        if (seen.has(name)) continue;
        if (seen.size < SEEN_MAX) seen.add(name);
        total += 1;
        if (differences.length < DIFFERENCES_MAX) differences.push(each);
      }
    },
    countRead: ({ entries = 0, resources = 0 }: Partial<typeof counts>): void => {
      counts.entries += entries;
      counts.resources += resources;
      if (performance.now() - reportedAt < PROGRESS_EVERY_MS) return;
      reportedAt = performance.now();
      progress(
        `${counts.entries} entries and ${counts.resources} resources read, ` +
          `${total} ${total === 1 ? 'difference' : 'differences'} so far`,
      );
    },
    result: () => ({ differences, differences_total: total }),
  };
}

const PAGE = 1_000;

const WRITTEN_BY = new Map<string, string>([
  [createRecipient.operation, 'recipients'],
  ...KINDS.map((kind) => [RESOURCES[kind].operation, RESOURCES[kind].collection] as const),
]);

const COLLECTIONS = new Map<string, string>(
  KINDS.map((kind) => [kind, RESOURCES[kind].collection]),
);

interface Pointers<Row> {
  collection: string;
  key: keyof Row & string;
  projection: Record<string, unknown>;
  compare: (read: Read, rows: Row[]) => Promise<Difference[]>;
}

interface RecordRow {
  _id: string;
  resource_id: string;
  operation: string;
  open: boolean;
}

const RECORDS: Pointers<RecordRow> = {
  collection: 'idempotency_records',
  key: 'resource_id',
  // The request may hold personal data, so it is not read.
  projection: { resource_id: 1, operation: 1, open: { $gt: ['$request', null] } },
  compare: async (read, rows) => {
    const records = await findResources(read, rows, ({ operation }) => WRITTEN_BY.get(operation));
    return records.flatMap(({ resource_id, operation, open, collection, exists }) => {
      if (!open && !exists) {
        return [difference('claim_without_resource', resource_id, operation, resource_id, null)];
      }
      // A recipient is written before its record is emptied, in a separate write.
      return open && exists && collection !== 'recipients'
        ? [difference('claim_left_open', resource_id, operation, null, 'open')]
        : [];
    });
  },
};

interface EventRow {
  _id: string;
  type: string;
  resource_id: string;
  data: { test?: true };
}

const EVENTS: Pointers<EventRow> = {
  collection: 'events',
  key: '_id',
  projection: { type: 1, resource_id: 1, 'data.test': 1 },
  compare: async (read, rows) => {
    const ours = rows.filter(({ data }) => data.test === undefined);
    const events = await findResources(read, ours, ({ type }) => {
      const [first = '', second = ''] = type.split('.');
      return COLLECTIONS.get(first === 'crypto' ? `${first}_${second}` : first);
    });
    return events
      .filter(({ exists }) => !exists)
      .map(({ _id, resource_id: id }) =>
        difference('event_without_resource', _id, 'resource_id', id, null),
      );
  },
};

async function* comparePages<Row extends object>(
  inSnapshot: InSnapshot,
  { collection, key, projection, compare }: Pointers<Row>,
): AsyncGenerator<Difference[]> {
  let after = '';
  while (true) {
    const filter = { [key]: { $gt: after } };
    const { rows, differences } = await inSnapshot(async (read) => {
      const options = { sort: { [key]: 1 as const }, limit: PAGE, projection };
      const rows = await readAll(read<Row>(collection, filter, options));
      return { rows, differences: await compare(read, rows) };
    });
    yield differences;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = String(last[key]);
  }
}

/** Leaves out rows without a collection. */
async function findResources<Row extends { resource_id: string }>(
  read: Read,
  rows: readonly Row[],
  getCollection: (row: Row) => string | undefined,
) {
  const known = rows.flatMap((row) => {
    const collection = getCollection(row);
    return collection === undefined ? [] : [{ ...row, collection }];
  });
  const existing = new Set<string>();
  for (const name of new Set(known.map(({ collection }) => collection))) {
    const own = known.filter(({ collection }) => collection === name);
    const filter = { _id: { $in: own.map(({ resource_id }) => resource_id) } };
    const resources = read<{ _id: string }>(name, filter, { projection: { _id: 1 } });
    for await (const { _id } of resources) existing.add(`${name}/${_id}`);
  }
  return known.map((row) => ({
    ...row,
    exists: existing.has(`${row.collection}/${row.resource_id}`),
  }));
}
