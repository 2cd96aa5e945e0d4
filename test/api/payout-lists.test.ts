import { randomInt } from 'node:crypto';
import { positionOf } from '../../src/domain/cursor';
import type { PayoutDocument } from '../../src/store/payouts';
import { call } from '../support/http';
import { openKey, type Service, startService } from '../support/service';
import { ids, walkPages } from './pages';
import { storedPayout } from './payout-setting';
import { expectRefusal } from './refusal';

let service: Service;
let account_id: string;
let key: string;

beforeAll(async () => {
  service = await startService();
});
afterAll(async () => service?.stop());
beforeEach(async () => {
  ({ account_id, key } = await service.account());
});

const get = (query: Record<string, string> = {}, as = key) =>
  call(service.url, 'GET', `/v1/payouts?${new URLSearchParams(query)}`, { key: as });
const read = (id: string) => call(service.url, 'GET', `/v1/payouts/${id}`, { key });

async function insert(rows: PayoutDocument[]): Promise<string[]> {
  await service.mongo.withSession(async (session) => {
    for (const row of rows) await service.stores.payouts.insert(row, session);
  });
  return rows.map(({ _id }) => _id);
}

const OLD = '2026-01-02T03:04:05.678Z';

/** Many in one millisecond. */
async function insertMany(count: number, created_at = OLD, changes: Partial<PayoutDocument> = {}) {
  const ties = new Set<number>();
  while (ties.size < count) ties.add(randomInt(1_000_000));
  const rows = [...ties].map((tie) => {
    const position = positionOf(Date.parse(created_at), tie);
    return storedPayout({ account_id }, { created_at, position, ...changes });
  });
  return await insert(rows);
}

test('is newest first, each row as a read of it', async () => {
  const times = [
    '2026-01-02T00:00:00.000Z',
    '2026-01-02T00:00:00.001Z',
    '2026-01-03T00:00:00.000Z',
  ];
  const made = await insert(
    times.map((created_at) => storedPayout({ account_id }, { created_at })),
  );
  const { status, body } = await get();
  expect(status).toBe(200);
  const rows = await Promise.all(made.reverse().map(read));
  expect(body).toEqual({
    object: 'list',
    data: rows.map((each) => each.body),
    has_more: false,
    next_cursor: null,
  });
});

test('is one empty page where there is no payout', async () => {
  expect((await get()).body).toEqual({
    ...{ object: 'list', data: [], has_more: false, next_cursor: null },
  });
});

test('gives hundreds of rows of one millisecond each exactly once', async () => {
  const rows = await insertMany(300);
  const pages = await walkPages((query) => get(query), { limit: '37' });
  expect(pages.slice(0, -1).every((page) => page.length === 37)).toBe(true);
  expect(pages.flat().sort()).toEqual(rows.sort());
});

test('gives every row once though new ones come meanwhile', async () => {
  const rows = await insertMany(20);
  const pages = await walkPages(
    async (query) => {
      const page = await get(query);
      await insertMany(1, new Date().toISOString());
      return page;
    },
    { limit: '8' },
  );
  expect(pages.flat().sort()).toEqual(rows.sort());
});

test('has 25 rows a page unless told, and no next page after a last one that is full', async () => {
  await insertMany(30);
  expect((await get()).body.data).toHaveLength(25);
  const all = (await get({ limit: '30' })).body;
  expect([all.data.length, all.has_more, all.next_cursor]).toEqual([30, false, null]);
  expect((await get({ limit: '29' })).body.has_more).toBe(true);
});

test.each(['created', 'submitted', 'sent', 'completed', 'failed', 'returned'] as const)(
  'filters by the status %s, also page by page',
  async (status) => {
    const rows = await insertMany(5, OLD, { status });
    await insertMany(5, OLD, { status: status === 'sent' ? 'failed' : 'sent' });
    const pages = await walkPages((query) => get(query), { status, limit: '2' });
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(pages.flat().sort()).toEqual(rows.sort());
  },
);

test.each([
  ['2026-01-02T03:04:05.678Z', 0],
  ['2026-01-02T03:04:05.679Z', 3],
  ['2026-01-02T03:04:05.678999999Z', 3],
  ['2026-01-02T03:04:05Z', 0],
  ['2026-01-02T04:04:05.679+01:00', 3],
])('created_before %s gives the rows before that moment', async (created_before, rows) => {
  await insertMany(3);
  expect((await get({ created_before })).body.data).toHaveLength(rows);
});

test("never shows another account's or environment's payouts", async () => {
  const [own] = await insertMany(1);
  const live = await insertMany(3, OLD, { livemode: true });
  const [other, liveKey] = [
    await service.account(),
    await openKey(service.stores, account_id, true),
  ];
  expect(ids((await get()).body.data)).toEqual([own]);
  expect((await get({}, other.key)).body.data).toEqual([]);
  const shown = (await get({}, liveKey)).body.data;
  expect(ids(shown).sort()).toEqual(live.sort());
  expect(shown.every((row: { livemode: boolean }) => row.livemode)).toBe(true);
});

test.each([
  ['limit=0', ['limit']],
  ['limit=101', ['limit']],
  ['limit=1.0', ['limit']],
  ['limit=', ['limit']],
  ['status=settled', ['status']],
  ['status=Sent', ['status']],
  ['status=', ['status']],
  ['method=sepa_instant', ['method']],
  ['reference=x', ['reference']],
  ['recipient_id=some-id', ['recipient_id']],
  ['status=sent&status=failed', ['status']],
  ['status[$ne]=sent', ['status[$ne]']],
  ['limit=0&status=paid&page=2', ['limit', 'status', 'page']],
])('refuses ?%s, naming each parameter at fault', async (query, fields) => {
  const answer = await call(service.url, 'GET', `/v1/payouts?${query}`, { key });
  expectRefusal(answer, 'invalid_request', fields);
});

test.each(['', 'yesterday', '2026-01-02', '2026-02-30T00:00:00Z', '2026-01-02T03:04:05'])(
  'refuses created_before "%s" as invalid_cursor',
  async (created_before) => {
    expectRefusal(await get({ created_before }), 'invalid_cursor', ['created_before']);
  },
);
