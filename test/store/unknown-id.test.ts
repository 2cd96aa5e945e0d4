import { randomUUID } from 'node:crypto';
import { useDatabase } from '../support/database';

const database = useDatabase();

beforeAll(async () => {
  const { db } = database;
  const collections = ['payments', 'refunds', 'payouts', 'events', 'accounts', 'bank_callbacks'];
  for (const name of collections) {
    await db.collection<{ _id: string }>(name).insertOne({ _id: 'somebody else’s' });
  }
  const claim = { resource_id: randomUUID(), request: { held: true } };
  await db.collection('idempotency').insertOne(claim);
});

/** An id that a caller without types left out. */
const missing: string = JSON.parse('{}').id;

test.each(['payments', 'refunds', 'payouts', 'events', 'accounts', 'callbacks'] as const)(
  'an id that is missing selects none of the %s',
  async (name) => {
    expect(await database.stores[name].get(missing)).toBeNull();
  },
);

test('an id that is missing selects and releases no claim', async () => {
  const { idempotency } = database.stores;
  expect(await idempotency.forResource(missing)).toBeNull();
  expect(await idempotency.release(missing)).toMatchObject({ deletedCount: 0 });
});
