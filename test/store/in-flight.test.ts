import { randomUUID } from 'node:crypto';
import type { Db, MongoClient } from 'mongodb';
import { connectMongo } from '../../src/base/mongo';
import { KINDS, LIFECYCLES } from '../../src/lifecycles';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { mongodbUri } from '../support/servers';

const database = `test_${randomUUID().slice(0, 8)}`;
let mongo: MongoClient;
let db: Db;
let stores: Stores;

beforeAll(async () => {
  mongo = await connectMongo(mongodbUri(), 'in-flight');
  db = mongo.db(database);
  stores = createStores(db);
  await ensureIndexes(stores);
});
afterAll(async () => {
  await mongo?.db(database).dropDatabase();
  await mongo?.close();
});

const FINAL = {
  payment: 'settled',
  refund: 'settled',
  payout: 'completed',
  crypto_payment: 'received',
  crypto_settlement: 'completed',
};

/** Rows with the fields that indexes hold. */
function rows(count: number, statuses: readonly string[]) {
  return Array.from({ length: count }, (_, n) => {
    const _id = randomUUID();
    const own = { position: _id, token_hash: _id, payment_id: _id };
    return {
      _id,
      account_id: 'acct_1',
      livemode: false,
      status: statuses[n % statuses.length],
      ...own,
    };
  });
}

test.each(KINDS)(
  'the few %ss in flight are paged through by an index of their own',
  async (kind) => {
    const collection = db.collection<{ _id: string }>(`${kind}s`);
    await collection.insertMany(rows(400, [FINAL[kind]]));
    const under = rows(7, LIFECYCLES[kind].inFlight);
    await collection.insertMany(under);
    const ids = under.map(({ _id }) => _id).sort();

    const first = await LIFECYCLES[kind].page(stores, '', 4);
    const second = await LIFECYCLES[kind].page(stores, first.at(-1)?._id ?? '', 4);
    expect([...first, ...second].map(({ _id }) => _id)).toEqual(ids);

    const plan = await stores[`${kind}s`].inFlight(ids[2] ?? '', 4).explain('executionStats');
    const { executionStats } = plan;
    expect(JSON.stringify(plan)).toContain('"indexName":"in_flight"');
    expect(JSON.stringify(plan)).not.toContain('COLLSCAN');
    expect(executionStats).toMatchObject({ nReturned: 4, totalDocsExamined: 4 });
  },
);
