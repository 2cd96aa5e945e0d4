import { randomUUID } from 'node:crypto';
import { KINDS, LIFECYCLES } from '../../src/lifecycles';
import type { Change } from '../../src/store/audit';
import { operatorsAudit } from '../support/audit';
import { useDatabase } from '../support/database';

const database = useDatabase();

function buildRows(count: number, statuses: readonly string[]) {
  return Array.from({ length: count }, (_, n) => {
    const _id = randomUUID();
    const unique = { position: _id, token_hash: _id, payment_id: _id, address: _id };
    const status = statuses[n % statuses.length];
    return { _id, account_id: 'acct_1', livemode: false, status, ...unique };
  });
}

const FINAL = {
  ...{ payment: 'settled', refund: 'settled', payout: 'completed' },
  ...{ crypto_payment: 'received', crypto_settlement: 'completed' },
};

test.each(KINDS)('pages through the few %ss in flight by an index of their own', async (kind) => {
  const { db, stores } = database;
  const collection = db.collection<{ _id: string }>(`${kind}s`);
  await collection.insertMany(buildRows(400, [FINAL[kind]]));
  const inFlight = buildRows(7, LIFECYCLES[kind].inFlight);
  await collection.insertMany(inFlight);
  const ids = inFlight.map(({ _id }) => _id).sort();

  const first = await LIFECYCLES[kind].page(stores, '', 4);
  const second = await LIFECYCLES[kind].page(stores, first.at(-1)?._id ?? '', 4);
  expect([...first, ...second].map(({ _id }) => _id)).toEqual(ids);

  const plan = await stores[`${kind}s`].inFlight(ids[2] ?? '', 4).explain('executionStats');
  const { executionStats } = plan;
  expect(JSON.stringify(plan)).toContain('"indexName":"in_flight"');
  expect(JSON.stringify(plan)).not.toContain('COLLSCAN');
  expect(executionStats).toMatchObject({ nReturned: 4, totalDocsExamined: 4 });
});

/** An id that a caller without types left out. */
const missing: string = JSON.parse('{}').id;

test.each([
  ['payments', 'payments'],
  ['refunds', 'refunds'],
  ['payouts', 'payouts'],
  ['events', 'events'],
  ['accounts', 'accounts'],
  ['callbacks', 'bank_callbacks'],
] as const)('selects none of the %s by a missing id', async (name, collection) => {
  await database.db.collection<{ _id: string }>(collection).insertOne({ _id: 'of another' });
  expect(await database.stores[name].get(missing)).toBeNull();
});

test('selects and releases no idempotency record by a missing id', async () => {
  const record = { resource_id: randomUUID(), request: { held: true } };
  await database.db.collection('idempotency_records').insertOne(record);
  const { idempotency } = database.stores;
  expect(await idempotency.forResource(missing)).toBeNull();
  expect(await idempotency.release(missing)).toMatchObject({ deletedCount: 0 });
});

test('counts live keys, live wallets and freezes for the alert, and no sandbox or earlier ones', async () => {
  const audit = operatorsAudit(database.stores);
  const acts: [Change['act'], boolean | null][] = [
    ['api_key.created', true],
    ['api_key.created', true],
    ['api_key.created', false],
    ['wallet.set', true],
    ['wallet.set', false],
    ['account.frozen', null],
    ['account.unfrozen', null],
  ];
  for (const [act, livemode] of acts) {
    await audit({ act, account_id: 'acct_1', livemode, target: null });
  }
  const { auditLog } = database.stores;
  expect(await auditLog.countWatched('2026-01-01T00:00:00.000Z')).toEqual([
    { act: 'api_key.created', count: 2 },
    { act: 'wallet.set', count: 1 },
    { act: 'account.frozen', count: 1 },
  ]);
  const counts = await auditLog.countWatched('9999-01-01T00:00:00.000Z');
  expect(counts.map(({ count }) => count)).toEqual([0, 0, 0]);
});
