import type { Document } from 'mongodb';
import { connectMonitored, useDatabase } from '../../support/database';
import { calculateTime, fillLists, LARGE_MERCHANT } from '../../support/list-rows';
import { planOf } from './plan';
import { QUERIES } from './queries';

const TOTAL = 4_000;
const UNTIL = Date.UTC(2026, 0, 1);
const PLACE = { n: 2_000, before: calculateTime(TOTAL - 400, TOTAL, UNTIL) };

const database = useDatabase({ connect: connectMonitored });

beforeAll(async () => {
  const { signal } = new AbortController();
  await fillLists(database.db, { total: TOTAL, until: UNTIL }, () => {}, signal);
});

const selections = QUERIES.filter(({ sorts }) => sorts === true);
const lists = QUERIES.filter(({ sorts }) => sorts !== true);

test.each(lists)('$name: an index gives the rows in order, and no others', async ({ read }) => {
  const plan = await planOf(database.mongo, database.db, () => read(database.stores, PLACE));
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
  const plan = await planOf(database.mongo, database.db, () => read(database.stores, PLACE));
  expect(plan.stages).not.toContain('COLLSCAN');
  expect(plan.indexes).toHaveLength(1);
  expect(plan.keys_examined).toBeLessThanOrEqual(plan.returned + BETWEEN_STATES);
});

test.each([
  [
    'the volume of each day',
    (since: string) => database.stores.payments.settledByDay(LARGE_MERCHANT, false, since),
    'settled_day',
  ],
  [
    'payments of each state',
    (since: string) => database.stores.payments.countByStatus(LARGE_MERCHANT, false, since),
    'status_position',
  ],
  [
    'the number of events',
    (since: string) => database.stores.events.countSince(LARGE_MERCHANT, false, since),
    'position',
  ],
] as const)('%s is counted from an index alone', async (_name, read, index) => {
  const plan = await planOf(database.mongo, database.db, () => read(PLACE.before));
  expect(plan).toMatchObject({ indexes: [index], documents_examined: 0 });
});

test('the volume of a day is the sum of what came, by currency', async () => {
  const since = calculateTime(TOTAL - 40, TOTAL, UNTIL);
  const days = await database.stores.payments.settledByDay(LARGE_MERCHANT, false, since);
  const found = await database.db
    .collection('payments')
    .find({ account_id: LARGE_MERCHANT, status: 'settled', settled_at: { $gte: since } })
    .toArray();
  const sum = (of: (row: Document) => number) => found.reduce((total, row) => total + of(row), 0);
  expect(days.every(({ currency, day }) => currency === 'EUR' && day >= since.slice(0, 10))).toBe(
    true,
  );
  expect(days.reduce((total, { amount }) => total + amount, 0)).toBe(sum((row) => row['amount']));
  expect(days.reduce((total, { payments }) => total + payments, 0)).toBe(found.length);
});

test('a page goes back to the one before it, and its bounds hold', async () => {
  const owner = { account_id: LARGE_MERCHANT, livemode: false };
  const first = await database.stores.payments.list({ ...owner, limit: 5 });
  const second = await database.stores.payments.list({
    ...owner,
    limit: 5,
    before: first.at(-1)?.position,
  });
  const back = await database.stores.payments.list({
    ...owner,
    limit: 5,
    after: second[0]?.position,
  });
  expect(back.map(({ _id }) => _id)).toEqual(first.map(({ _id }) => _id));
  const bounds = { since: second.at(-1)?.position, until: first[0]?.position };
  const between = await database.stores.payments.list({ ...owner, ...bounds, limit: 100 });
  const exported = await database.stores.payments.export({ ...owner, ...bounds }).toArray();
  const ids = [...first.slice(1), ...second].map(({ _id }) => _id);
  expect(between.map(({ _id }) => _id)).toEqual(ids);
  expect(exported.map(({ _id }) => _id)).toEqual(ids);
});

test('a pair of filters that is rare among many of each has an index of its own', async () => {
  const pair = lists.find(({ name }) => name === 'payments by method visa, status authorized');
  const plan = await planOf(database.mongo, database.db, async () =>
    pair?.read(database.stores, PLACE),
  );
  expect(plan).toMatchObject({
    indexes: ['method_status_position'],
    stages: ['LIMIT', 'FETCH', 'IXSCAN'],
  });
});
