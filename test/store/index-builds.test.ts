import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Collection, MongoClient } from 'mongodb';
import { connectToBuild, makeIndexes } from '../../src/base/mongo-indexes';
import { useDatabase } from '../support/database';
import { mongodbUri } from '../support/servers';

const SOCKET_MS = 400;
const UNIQUE = { key: { token: 1 }, name: 'token', unique: true } as const;
const PLAIN = { key: { status: 1 }, name: 'status' } as const;

const database = useDatabase({
  connect: () => new MongoClient(mongodbUri(), { runtimeAdapters: { os } }).connect(),
  indexed: false,
});

async function filled(name: string, count: number): Promise<Collection> {
  const collection = database.db.collection(name);
  const rows = Array.from({ length: count }, (_, n) => {
    const token = `${name}-${n}`;
    return { token, token_hash: token, position: token, status: n % 3 };
  });
  for (let from = 0; from < count; from += 2_000) {
    await collection.insertMany(rows.slice(from, from + 2_000));
  }
  return collection;
}

async function namesOf(collection: Collection): Promise<(string | undefined)[]> {
  return (await collection.indexes()).map(({ name }) => name);
}

/** Does work anew whose transaction the server has ended for its age, as on a busy machine. */
async function uninterrupted(work: (nth: number) => Promise<boolean>): Promise<void> {
  for (const nth of [1, 2, 3, 4, 5]) if (await work(nth)) return;
  throw new Error('Each transaction was ended for its age.');
}

/**
 * Holds a transaction in which a collection was written to: no build of it begins meanwhile. The end
 * tells whether it was held all the time.
 */
async function held(collection: Collection): Promise<() => Promise<boolean>> {
  const session = database.mongo.startSession();
  session.startTransaction();
  await collection.insertOne({ token: 'held', token_hash: 'held' }, { session });
  return async () => {
    const isHeld = await session.commitTransaction().then(
      () => true,
      () => false,
    );
    await session.endSession();
    return isHeld;
  };
}

test('a build that outlasts the time-out of sockets is waited for', async () => {
  await uninterrupted(async (nth) => {
    const collection = await filled(`slow-${nth}`, 10);
    const patient = await connectToBuild(`${mongodbUri()}&socketTimeoutMS=${SOCKET_MS}`);
    const release = await held(collection);
    const making = makeIndexes(patient.db(database.db.databaseName).collection(`slow-${nth}`), [
      UNIQUE,
    ]);
    await sleep(2 * SOCKET_MS);
    const isHeld = await release();
    await making;
    await patient.close();
    expect(await namesOf(collection)).toEqual(['_id_', 'token']);
    return isHeld;
  });
});

test('an index of the same name with other keys is refused', async () => {
  const collection = await filled('differs', 1);
  await makeIndexes(collection, [PLAIN]);
  const other = { key: { status: 1, token: 1 }, name: 'status' } as const;
  await expect(makeIndexes(collection, [other])).rejects.toThrow(/same name/);
});
