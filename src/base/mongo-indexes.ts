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
  if (missing === undefined) {
    await collection.createIndexes([...indexes]);
    return;
  }
  const existing = await collection.indexes().catch((error: unknown) => {
    if (error instanceof MongoServerError && error.code === NO_COLLECTION) return [];
    throw error;
  });
  const names = new Set(existing.map(({ name }) => name));
  for (const index of indexes.filter(({ name }) => !names.has(name))) {
    const list = index.unique === true ? missing.unique : missing.others;
    list.push(`${collection.collectionName}.${index.name}`);
  }
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
  if (missing !== undefined) {
    missing.validators.push(collection);
    return;
  }
  const strict = { validator, validationLevel: 'strict', validationAction: 'error' } as const;
  try {
    await db.createCollection(collection, strict);
  } catch (error) {
    if (!(error instanceof MongoServerError) || error.code !== COLLECTION_EXISTS) throw error;
    await db.command({ collMod: collection, ...strict });
  }
}

export function indexBuilder<D extends Document>(
  collection: Collection<D>,
  indexes: readonly NamedIndex[],
) {
  return (missing?: MissingIndexes) => makeIndexes(collection, indexes, missing);
}
