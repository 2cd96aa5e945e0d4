import { randomUUID } from 'node:crypto';
import type { MongoClient } from 'mongodb';
import { connectMongo } from '../../src/base/mongo';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { mongodbUri } from '../support/servers';

const database = `test_${randomUUID().slice(0, 8)}`;
let mongo: MongoClient;
let stores: Stores;

beforeAll(async () => {
  mongo = await connectMongo(mongodbUri(), 'unknown-id');
  const db = mongo.db(database);
  stores = createStores(db);
  await ensureIndexes(stores);
  const collections = ['payments', 'refunds', 'payouts', 'events', 'accounts', 'bank_callbacks'];
  for (const name of collections) {
    await db.collection<{ _id: string }>(name).insertOne({ _id: 'somebody else’s' });
  }
  const claim = { resource_id: randomUUID(), request: { held: true } };
  await db.collection('idempotency').insertOne(claim);
});
afterAll(async () => {
  await mongo?.db(database).dropDatabase();
  await mongo?.close();
});

/** An id that a caller without types left out. */
const missing: string = JSON.parse('{}').id;

test.each(['payments', 'refunds', 'payouts', 'events', 'accounts', 'callbacks'] as const)(
  'an id that is missing selects none of the %s',
  async (name) => {
    expect(await stores[name].get(missing)).toBeNull();
  },
);

test('an id that is missing selects and releases no claim', async () => {
  expect(await stores.idempotency.forResource(missing)).toBeNull();
  expect(await stores.idempotency.release(missing)).toMatchObject({ deletedCount: 0 });
});
