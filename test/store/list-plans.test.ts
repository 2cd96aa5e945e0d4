import { randomUUID } from 'node:crypto';
import type { Db, MongoClient } from 'mongodb';
import { connectMongo } from '../../src/mongo';
import { createStores, ensureIndexes } from '../../src/store';
import { mongodbUri } from '../support/servers';

const database = `test_${randomUUID().slice(0, 8)}`;
let mongo: MongoClient;
let db: Db;

beforeAll(async () => {
  mongo = await connectMongo(mongodbUri(), 'list-plans');
  db = mongo.db(database);
  await ensureIndexes(createStores(db));
});
afterAll(async () => {
  await mongo?.db(database).dropDatabase();
  await mongo?.close();
});

const OWNER = { account_id: 'acct_1', livemode: false };

/** Payments of one merchant: many expired, many by card, few expired by card. */
function payments(count: number) {
  return Array.from({ length: count }, (_, n) => ({
    _id: randomUUID(),
    ...OWNER,
    token_hash: randomUUID(),
    position: String(n).padStart(9, '0'),
    method: n % 2 === 0 ? 'visa' : 'multibanco',
    status: n % 2 === 0 ? (n % 200 === 0 ? 'expired' : 'settled') : 'expired',
  }));
}

test('a pair of filters that is rare among many of each has an index of its own', async () => {
  const collection = db.collection<{ _id: string }>('payments');
  await collection.insertMany(payments(2_000));
  const plan = await collection
    .find({ ...OWNER, method: 'visa', status: 'expired' })
    .sort({ position: -1 })
    .limit(5)
    .explain('executionStats');
  expect(JSON.stringify(plan)).not.toContain('COLLSCAN');
  expect(plan['executionStats']).toMatchObject({ nReturned: 5, totalDocsExamined: 5 });
});
