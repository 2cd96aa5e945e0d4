import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { ApplicationFailure } from '@temporalio/common';
import { MongoClient, MongoNetworkError } from 'mongodb';
import { Contention, connectMongo } from '../../src/base/mongo';
import { createStores, ensureIndexes } from '../../src/store';
import { retryUntilDone } from './eventually';
import { useFixture } from './fixture';
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

const TRIES = 20;

/** Repeats an attempt that failed by write conflicts or by a stall of the server. */
export async function retryTransient<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isTransient(error) || left === 1) throw error;
    }
  }
}

function isTransient(error: unknown): boolean {
  if (error instanceof ApplicationFailure) return (error.nextRetryDelay ?? undefined) !== undefined;
  return error instanceof Contention || error instanceof MongoNetworkError;
}
