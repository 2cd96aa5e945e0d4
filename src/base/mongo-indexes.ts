import { isDeepStrictEqual } from 'node:util';
import {
  type Collection,
  type Db,
  type Document,
  type IndexDescription,
  MongoClient,
  MongoServerError,
} from 'mongodb';
import { RUNTIME_ADAPTERS } from './runtime-adapters';

export type NamedIndex = IndexDescription & { name: string };

export class MissingIndexes {
  /** Names such as `payments.status_position`. */
  readonly unique: string[] = [];
  readonly others: string[] = [];
  /** Collections. */
  readonly validators: string[] = [];
}

const NO_COLLECTION = 26;
const COLLECTION_EXISTS = 48;

/** Connects without a socket timeout: the server responds at the end of a build, after hours. */
export async function connectToBuild(uri: string): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName: 'indexes',
    writeConcern: { w: 'majority', journal: true },
    serverSelectionTimeoutMS: 2_000,
    connectTimeoutMS: 2_000,
    socketTimeoutMS: 0,
    runtimeAdapters: RUNTIME_ADAPTERS,
  });
  await client.connect();
  return client;
}

/**
 * Waits for the builds; reads and writes continue.
 * @param missing collects missing indexes; then none is built
 * @throws MongoServerError when an index cannot be built
 */
export async function makeIndexes<D extends Document>(
  collection: Collection<D>,
  indexes: readonly NamedIndex[],
  missing?: MissingIndexes,
): Promise<void> {
  if (missing === undefined) await collection.createIndexes([...indexes]);
  else await noteMissing(collection, indexes, missing);
}

/**
 * Makes the server refuse documents that a filter does not match, in every write.
 * @param missing collects the missing one; then nothing is changed
 */
export async function makeValidator(
  db: Db,
  collection: string,
  validator: Document,
  missing?: MissingIndexes,
): Promise<void> {
  const [found] = await db.listCollections({ name: collection }).toArray();
  const options: Document = found !== undefined && 'options' in found ? (found.options ?? {}) : {};
  const { validationLevel = 'strict', validationAction = 'error' } = options;
  const isStrict = validationLevel === 'strict' && validationAction === 'error';
  if (isStrict && isDeepStrictEqual(options['validator'], validator)) return;
  if (missing !== undefined) missing.validators.push(collection);
  else await setValidator(db, collection, validator);
}

async function setValidator(db: Db, collection: string, validator: Document): Promise<void> {
  const options = { validator, validationLevel: 'strict', validationAction: 'error' } as const;
  try {
    await db.createCollection(collection, options);
  } catch (error) {
    if (!(error instanceof MongoServerError) || error.code !== COLLECTION_EXISTS) throw error;
    await db.command({ collMod: collection, ...options });
  }
}

export function indexBuilder<D extends Document>(
  collection: Collection<D>,
  indexes: readonly NamedIndex[],
) {
  return (missing?: MissingIndexes) => makeIndexes(collection, indexes, missing);
}

async function noteMissing<D extends Document>(
  collection: Collection<D>,
  indexes: readonly NamedIndex[],
  missing: MissingIndexes,
): Promise<void> {
  const existing = await readIndexNames(collection);
  for (const index of indexes.filter(({ name }) => !existing.has(name))) {
    const list = index.unique === true ? missing.unique : missing.others;
    list.push(`${collection.collectionName}.${index.name}`);
  }
}

/** @returns none while the collection does not exist */
async function readIndexNames<D extends Document>(collection: Collection<D>): Promise<Set<string>> {
  try {
    return new Set((await collection.indexes()).map(({ name = '' }) => name));
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NO_COLLECTION) return new Set();
    throw error;
  }
}
