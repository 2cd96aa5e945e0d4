import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { type Db, MongoClient } from 'mongodb';
import { fillLists, timeOf } from '../../bench/lists/fill';
import { planOf } from '../../bench/lists/plan';
import { QUERIES } from '../../bench/lists/queries';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { mongodbUri } from '../support/servers';

const TOTAL = 4_000;
const UNTIL = Date.UTC(2026, 0, 1);
const PLACE = { n: 2_000, before: timeOf(TOTAL - 400, TOTAL, UNTIL) };

const database = `test_${randomUUID().slice(0, 8)}`;
let mongo: MongoClient;
let db: Db;
let stores: Stores;

beforeAll(async () => {
  mongo = await new MongoClient(mongodbUri(), {
    appName: 'list-plans',
    monitorCommands: true,
    runtimeAdapters: { os },
  }).connect();
  db = mongo.db(database);
  stores = createStores(db);
  await ensureIndexes(stores);
  const { signal } = new AbortController();
  await fillLists(db, { total: TOTAL, until: UNTIL }, () => {}, signal);
});
afterAll(async () => {
  await mongo?.db(database).dropDatabase();
  await mongo?.close();
});

const selections = QUERIES.filter(({ sorts }) => sorts === true);
const lists = QUERIES.filter(({ sorts }) => sorts !== true);

test.each(lists)('$name: an index gives the rows in order, and no others', async ({ read }) => {
  const plan = await planOf(mongo, db, () => read(stores, PLACE));
  expect(plan.stages).not.toContain('COLLSCAN');
  expect(plan.stages).not.toContain('SORT');
  expect(plan.indexes).toHaveLength(1);
  expect(plan.documents_examined).toBeLessThanOrEqual(plan.returned + FILTERED);
  expect(plan.keys_examined).toBeLessThanOrEqual(plan.returned + FILTERED + BETWEEN_STATES);
});

/** Rows of one reference or of one payment, which hold a status besides. */
const FILTERED = 1;
/** Keys passed over where an index is gone through once for each of several states. */
const BETWEEN_STATES = 4;

test.each(selections)('$name: an index selects what is sorted', async ({ read }) => {
  const plan = await planOf(mongo, db, () => read(stores, PLACE));
  expect(plan.stages).not.toContain('COLLSCAN');
  expect(plan.indexes).toHaveLength(1);
  expect(plan.keys_examined).toBeLessThanOrEqual(plan.returned + BETWEEN_STATES);
});

test('a pair of filters that is rare among many of each has an index of its own', async () => {
  const pair = lists.find(({ name }) => name === 'payments by method visa, status authorized');
  const plan = await planOf(mongo, db, async () => pair?.read(stores, PLACE));
  expect(plan).toMatchObject({
    indexes: ['method_status_position'],
    stages: ['LIMIT', 'FETCH', 'IXSCAN'],
  });
});
