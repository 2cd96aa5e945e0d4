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
  names: string[];
  /** Settles when they are there, or can't be made. */
  done: Promise<void>;
}

export type TakeBuild = (build: IndexBuild) => void;

/** Rows up to which a build takes no longer than a start may. */
const ROWS_AT_ONCE = 20_000;
const NAMESPACE_NOT_FOUND = 26;

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
 * @param later takes the builds that are not waited for: those of a large collection, except unique
 *   ones, without which facts could be kept twice. All are waited for when it is not given.
 * @throws MongoServerError when an index of that name is another one
 */
export async function makeIndexes<D extends Document>(
  collection: Collection<D>,
  wanted: readonly NamedIndex[],
  later?: TakeBuild,
): Promise<void> {
  const there = await namesIn(collection);
  const missing = wanted.filter(({ name }) => !there.has(name));
  const patient = later !== undefined && missing.length > 0 && (await isLarge(collection));
  const put = patient ? missing.filter(({ unique }) => unique !== true) : [];
  await build(
    collection,
    wanted.filter((index) => !put.includes(index)),
  );
  if (put.length === 0) return;
  const names = put.map(({ name }) => name);
  later?.({ collection: collection.collectionName, names, done: build(collection, put) });
}

async function build<D extends Document>(
  collection: Collection<D>,
  indexes: NamedIndex[],
): Promise<void> {
  if (indexes.length > 0) await collection.createIndexes(indexes);
}

async function isLarge<D extends Document>(collection: Collection<D>): Promise<boolean> {
  return (await collection.estimatedDocumentCount()) > ROWS_AT_ONCE;
}

async function namesIn<D extends Document>(collection: Collection<D>): Promise<Set<string>> {
  try {
    return new Set((await collection.indexes()).map(({ name = '' }) => name));
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND) return new Set();
    throw error;
  }
}
