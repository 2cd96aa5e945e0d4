import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { MongoClient } from 'mongodb';
import { connectMongo } from '../../src/base/mongo';
import { createStores, ensureIndexes } from '../../src/store';
import { useFixture } from './fixture';
import { retryUntilDone } from './insist';
import { mongodbUri } from './servers';

interface DatabaseOptions {
  connect?: () => Promise<MongoClient>;
  indexed?: boolean;
}

export function useDatabase({
  connect = () => connectMongo(mongodbUri(), 'test'),
  indexed = true,
}: DatabaseOptions = {}) {
  return useFixture(
    async () => {
      const mongo = await connect();
      const db = mongo.db(`test_${randomUUID().slice(0, 8)}`);
      const stores = createStores(db);
      if (indexed) await retryUntilDone(() => ensureIndexes(stores));
      return { mongo, db, stores };
    },
    async ({ mongo, db }) => {
      await retryUntilDone(() => db.dropDatabase());
      await mongo.close();
    },
  );
}

/** Connects with the driver's own settings, and with an event for each command. */
export function connectMonitored(): Promise<MongoClient> {
  const options = { monitorCommands: true, runtimeAdapters: { os } };
  return new MongoClient(mongodbUri(), options).connect();
}

const CALL_MS_MAX = 30_000;

export async function withClient<T>(
  uri: string,
  work: (client: MongoClient) => Promise<T>,
): Promise<T> {
  const client = new MongoClient(uri, {
    ...{ serverSelectionTimeoutMS: CALL_MS_MAX, connectTimeoutMS: CALL_MS_MAX },
    socketTimeoutMS: CALL_MS_MAX * 5,
    // The driver's own dynamic import of `os` fails under jest's CommonJS.
    runtimeAdapters: { os },
  });
  return await work(client).finally(() => client.close());
}
