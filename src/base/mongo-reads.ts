import {
  type AggregateOptions,
  type CollectionOptions,
  type Db,
  type Document,
  type Filter,
  type FindOptions,
  MongoClient,
} from 'mongodb';
import { RUNTIME_ADAPTERS } from './runtime-adapters';

/**
 * Makes the server end each read after a time, since the driver gives a read up without stopping
 * it. A read may set its own `maxTimeMS`.
 */
export function openDatabase(mongo: MongoClient, name: string, maxTimeMS: number): Db {
  const db = mongo.db(name);
  const open = db.collection.bind(db);
  return Object.assign(db, {
    collection: (of: string, options?: CollectionOptions) => {
      const rows = open(of, options);
      const find = rows.find.bind(rows);
      const aggregate = rows.aggregate.bind(rows);
      // `findOne` and `countDocuments` call these.
      return Object.assign(rows, {
        find: (filter: Filter<Document> = {}, more: FindOptions = {}) =>
          // As an option it would prevail over a later call of the cursor's `maxTimeMS`.
          find(filter, more).maxTimeMS(more.maxTimeMS ?? maxTimeMS),
        aggregate: (pipeline: Document[] = [], more: AggregateOptions = {}) =>
          aggregate(pipeline, { maxTimeMS, ...more }),
      });
    },
  });
}

const LONG_CONNECT_MS = 2_500;

/** Server keeps a snapshot for five minutes. */
const LONG_READ_MS = 300_000;

export function connectLongReader(uri: string, appName: string): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName,
    serverSelectionTimeoutMS: LONG_CONNECT_MS,
    connectTimeoutMS: LONG_CONNECT_MS,
    socketTimeoutMS: LONG_READ_MS,
    runtimeAdapters: RUNTIME_ADAPTERS,
  });
  return client.connect();
}
