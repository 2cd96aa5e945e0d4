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
  return new MongoClient(mongodbUri(), {
    monitorCommands: true,
    runtimeAdapters: { os },
  }).connect();
}
