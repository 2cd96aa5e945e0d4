import os from 'node:os';
import { type ClientSession, type Db, MongoClient } from 'mongodb';

/** Connects with the durability that money needs: majority, journaled; short time-outs. */
export async function connectMongo(uri: string, appName: string): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    appName,
    writeConcern: { w: 'majority', journal: true },
    readConcernLevel: 'majority',
    serverSelectionTimeoutMS: 2_000,
    connectTimeoutMS: 2_000,
    socketTimeoutMS: 5_000,
    maxPoolSize: 50,
    ignoreUndefined: true,
    // Under jest's CommonJS the driver's own dynamic import of `os` fails.
    runtimeAdapters: { os },
  });
  await client.connect();
  return client;
}

/** The driver would go on trying for two minutes, long after its caller has given up. */
const TRANSACTION_TIMEOUT_MS = 5_000;

/** One transaction; `work` may run several times, so it holds no effect but its own writes. */
export async function inTransaction<T>(
  mongo: MongoClient,
  work: (session: ClientSession) => Promise<T>,
): Promise<T> {
  return await mongo.withSession({ defaultTimeoutMS: TRANSACTION_TIMEOUT_MS }, (session) =>
    session.withTransaction(() => work(session), {
      readConcern: { level: 'snapshot' },
      writeConcern: { w: 'majority', journal: true },
      readPreference: 'primary',
    }),
  );
}

/** Whether an insert or update broke the unique index whose name starts with `index`. */
export function isDuplicateKey(error: unknown, index = ''): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    error.code === 11000 &&
    error.message.includes(`index: ${index}`)
  );
}

export type { Db };
