import os from 'node:os';
import {
  type Collection,
  type Document,
  type IndexDescription,
  MongoClient,
  MongoServerError,
} from 'mongodb';

export type NamedIndex = IndexDescription & { name: string };

/** Indexes that a collection gets while the service is at work. */
interface IndexBuild {
  collection: string;
  /** Those that no process has begun. */
  names: string[];
  /** Settles when they are there, or can't be made. */
  done: Promise<void>;
}

export type TakeBuild = (build: IndexBuild) => void;

/** List of indexes that are wanted and not there: given to be filled, no index is made. */
export class MissingIndexes {
  /** Names such as `payments.status_position`. */
  readonly unique: string[] = [];
  readonly others: string[] = [];
}

/** Work on wanted indexes, where it is not simply making them. */
export type IndexWork = TakeBuild | MissingIndexes;

/** Code of the server's answer for a collection that nobody has written to yet. */
const NO_COLLECTION = 26;

/** Rows up to which a build takes no longer than a start may. */
const ROWS_AT_ONCE = 20_000;

/**
 * Connects without a time-out of sockets: a build of hundreds of millions of rows takes hours, and its
 * command is answered when it is done.
 */
export async function connectToBuild(uri: string): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName: 'indexes',
    writeConcern: { w: 'majority', journal: true },
    serverSelectionTimeoutMS: 2_000,
    connectTimeoutMS: 2_000,
    socketTimeoutMS: 0,
    // The driver's own dynamic import of `os` fails under jest's CommonJS.
    runtimeAdapters: { os },
  });
  await client.connect();
  return client;
}

/**
 * Makes the indexes that a collection lacks. Reads and writes go on meanwhile, also those of other
 * processes, and processes that ask at the same time wait for one build.
 * @param work takes the builds that are not waited for: those of a large collection, except unique
 *   ones, without which facts could be kept twice; or the list that only notes what is missing. All
 *   are made and waited for when it is not given.
 * @throws MongoServerError when a unique index, or one that is waited for, can't be made
 */
export async function makeIndexes<D extends Document>(
  collection: Collection<D>,
  wanted: readonly NamedIndex[],
  work?: IndexWork,
): Promise<void> {
  if (work instanceof MissingIndexes) return await noteMissing(collection, wanted, work);
  if (work === undefined || !(await isLarge(collection))) {
    await build(collection, wanted);
    return;
  }
  const there = await namesIn(collection);
  await build(collection, wanted.filter(isUnique));
  // Those that are listed may be under way in another process, which would be waited for.
  const others = wanted.filter((index) => !isUnique(index));
  const names = others.map(({ name }) => name).filter((name) => !there.has(name));
  work({ collection: collection.collectionName, names, done: build(collection, others) });
}

async function noteMissing<D extends Document>(
  collection: Collection<D>,
  wanted: readonly NamedIndex[],
  missing: MissingIndexes,
): Promise<void> {
  const there = await namesIn(collection);
  for (const index of wanted.filter(({ name }) => !there.has(name))) {
    const list = isUnique(index) ? missing.unique : missing.others;
    list.push(`${collection.collectionName}.${index.name}`);
  }
}

function isUnique({ unique }: NamedIndex): boolean {
  return unique === true;
}

async function build<D extends Document>(
  collection: Collection<D>,
  indexes: readonly NamedIndex[],
): Promise<void> {
  if (indexes.length > 0) await collection.createIndexes([...indexes]);
}

async function isLarge<D extends Document>(collection: Collection<D>): Promise<boolean> {
  return (await collection.estimatedDocumentCount()) > ROWS_AT_ONCE;
}

async function namesIn<D extends Document>(collection: Collection<D>): Promise<Set<string>> {
  try {
    return new Set((await collection.indexes()).map(({ name = '' }) => name));
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NO_COLLECTION) return new Set();
    throw error;
  }
}
