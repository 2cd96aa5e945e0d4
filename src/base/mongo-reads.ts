import os from 'node:os';
import {
  type AggregateOptions,
  type CollectionOptions,
  type Db,
  type Document,
  type Filter,
  type FindOptions,
  MongoClient,
} from 'mongodb';

/**
 * Opens a database in which the server ends each read after a time, since the driver gives up a
 * read without stopping it. A read may set its own `maxTimeMS`.
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
          // Not as an option, which would prevail over a later call of the cursor's `maxTimeMS`.
          find(filter, more).maxTimeMS(more.maxTimeMS ?? maxTimeMS),
        aggregate: (pipeline: Document[] = [], more: AggregateOptions = {}) =>
          aggregate(pipeline, { maxTimeMS, ...more }),
      });
    },
  });
}

const LONG_CONNECT_MS = 2_500;

/** Socket time-out of long reads; the server keeps a snapshot for five minutes. */
const LONG_READ_MS = 300_000;

/** Connects for reads that take minutes. */
export function connectLongReader(uri: string, appName: string): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName,
    serverSelectionTimeoutMS: LONG_CONNECT_MS,
    connectTimeoutMS: LONG_CONNECT_MS,
    socketTimeoutMS: LONG_READ_MS,
    // Under jest's CommonJS the driver's own dynamic import of `os` fails.
    runtimeAdapters: { os },
  });
  return client.connect();
}
