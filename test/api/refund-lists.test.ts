import { randomInt } from 'node:crypto';
import { positionOf } from '../../src/domain/cursor';
import type { RefundDocument } from '../../src/store/refunds';
import { call, settledPayment } from '../support/http';
import { openKey, type Service, startService } from '../support/service';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

let service: Service;

beforeAll(async () => {
  service = await startService();
});
afterAll(async () => service?.stop());

const get = (key: string, path: string, query: Record<string, string> = {}) =>
  call(service.url, 'GET', `${path}?${new URLSearchParams(query)}`, { key });
const refund = async (key: string, payment_id: string, amount = 1): Promise<string> =>
  (await call(service.url, 'POST', '/v1/refunds', { key, body: { payment_id, amount } })).body.id;
const simulate = (key: string, id: string, event: string) =>
  call(service.url, 'POST', `/v1/sandbox/refunds/${id}/simulate`, { key, body: { event } });

/** Refunds as the service writes them, many in one millisecond. */
async function insert(like: RefundDocument, count: number, at: string, changes: object = {}) {
  const ties = new Set<number>();
  while (ties.size < count) ties.add(randomInt(1_000_000));
  const rows = [...ties].map((tie): RefundDocument => {
    const position = positionOf(Date.parse(at), tie);
    return { ...like, _id: crypto.randomUUID(), position, created_at: at, ...changes };
  });
  await service.mongo.withSession(async (session) => {
    for (const row of rows) await service.stores.refunds.insert(row, session);
  });
  return rows.map(({ _id }) => _id);
}

/** An account with one payment and one refund of it. */
async function shopWithRefund() {
  const shop = await service.account();
  const payment: { id: string } = await settledPayment(service, shop.key);
  const id = await refund(shop.key, payment.id);
  const stored = await service.stores.refunds.get(id);
  if (stored === null) throw new Error('The refund is not stored.');
  return { ...shop, payment_id: payment.id, stored };
}

const LISTS: [name: string, path: (payment_id: string) => string][] = [
  ['all refunds', () => '/v1/refunds'],
  ['the refunds of a payment', (payment_id) => `/v1/payments/${payment_id}/refunds`],
];

describe.each(LISTS)('the list of %s', (_, pathOf) => {
  test('is newest first, each row as a read of it', async () => {
    const { key, payment_id, stored } = await shopWithRefund();
    const made = [stored._id, await refund(key, payment_id, 2), await refund(key, payment_id, 3)];
    const { status, body } = await get(key, pathOf(payment_id));
    expect(status).toBe(200);
    const read = await Promise.all(made.reverse().map((id) => get(key, `/v1/refunds/${id}`)));
    expect(body).toEqual({
      object: 'list',
      data: read.map((each) => each.body),
      has_more: false,
      next_cursor: null,
    });
  });

  test('is one empty page where there is no refund', async () => {
    const { key } = await service.account();
    const { id } = await settledPayment(service, key);
    expect((await get(key, pathOf(id))).body).toEqual({
      ...{ object: 'list', data: [], has_more: false, next_cursor: null },
    });
  });

  test('gives hundreds of rows of one millisecond each exactly once', async () => {
    const { key, payment_id, stored } = await shopWithRefund();
    const rows = await insert(stored, 300, '2026-01-02T03:04:05.678Z');
    const pages = await walkPages((query) => get(key, pathOf(payment_id), query), { limit: '37' });
    expect(pages.slice(0, -1).every((page) => page.length === 37)).toBe(true);
    expect(pages.flat().sort()).toEqual([stored._id, ...rows].sort());
  });

  test('gives every row once though new ones come meanwhile', async () => {
    const { key, payment_id, stored } = await shopWithRefund();
    const rows = await insert(stored, 20, '2026-01-02T03:04:05.678Z');
    const pages = await walkPages(
      async (query) => {
        const page = await get(key, pathOf(payment_id), query);
        await refund(key, payment_id);
        return page;
      },
      { limit: '8' },
    );
    expect(pages.flat().sort()).toEqual([stored._id, ...rows].sort());
  });

  test('has 25 rows a page unless told, and no next page after a last one that is full', async () => {
    const { key, payment_id, stored } = await shopWithRefund();
    await insert(stored, 29, '2026-01-02T03:04:05.678Z');
    const list = (query: Record<string, string>) => get(key, pathOf(payment_id), query);
    expect((await list({})).body.data).toHaveLength(25);
    const all = (await list({ limit: '30' })).body;
    expect([all.data.length, all.has_more, all.next_cursor]).toEqual([30, false, null]);
    expect((await list({ limit: '29' })).body.has_more).toBe(true);
  });

  test('filters by status, also page by page', async () => {
    const { key, payment_id, stored } = await shopWithRefund();
    const failed = await refund(key, payment_id, 2);
    const settled = await refund(key, payment_id, 3);
    await simulate(key, failed, 'failed');
    await simulate(key, settled, 'settled');
    const old = await insert(stored, 5, '2026-01-02T03:04:05.678Z');
    const found = (query: Record<string, string>) =>
      walkPages((page) => get(key, pathOf(payment_id), page), query);
    expect((await found({ status: 'failed' })).flat()).toEqual([failed]);
    expect((await found({ status: 'settled' })).flat()).toEqual([settled]);
    const processing = await found({ status: 'processing', limit: '2' });
    expect(processing.map((page) => page.length)).toEqual([2, 2, 2]);
    expect(processing.flat().sort()).toEqual([stored._id, ...old].sort());
  });

  test.each([
    ['2026-01-02T03:04:05.678Z', 0],
    ['2026-01-02T03:04:05.679Z', 3],
    ['2026-01-02T03:04:05.678999999Z', 3],
    ['2026-01-02T03:04:05Z', 0],
    ['2026-01-02T04:04:05.679+01:00', 3],
  ])('created_before %s gives the rows before that moment', async (created_before, rows) => {
    const { key, payment_id, stored } = await shopWithRefund();
    await insert(stored, 3, '2026-01-02T03:04:05.678Z');
    const { body } = await get(key, pathOf(payment_id), { created_before });
    expect(body.data).toHaveLength(rows);
  });

  test("never shows another account's or environment's refunds", async () => {
    const { account_id, key, payment_id, stored } = await shopWithRefund();
    const live = { livemode: true };
    const rows = await insert(stored, 3, '2026-01-02T03:04:05.678Z', live);
    const [other, liveKey] = [
      await service.account(),
      await openKey(service.stores, account_id, true),
    ];
    expect(ids((await get(key, pathOf(payment_id))).body.data)).toEqual([stored._id]);
    expect((await get(other.key, '/v1/refunds')).body.data).toEqual([]);
    expect(ids((await get(liveKey, '/v1/refunds')).body.data).sort()).toEqual(rows.sort());
    for (const foreign of [other.key, liveKey]) {
      const path = `/v1/payments/${payment_id}/refunds`;
      expectRefusal(await get(foreign, path), 'payment_not_found');
    }
  });

  test.each([
    ['limit=0', ['limit']],
    ['limit=101', ['limit']],
    ['limit=1.0', ['limit']],
    ['limit=', ['limit']],
    ['status=refunded', ['status']],
    ['status=Settled', ['status']],
    ['status=', ['status']],
    ['method=ideal', ['method']],
    ['reference=x', ['reference']],
    ['payment_id=some-id', ['payment_id']],
    ['status=settled&status=failed', ['status']],
    ['status[$ne]=settled', ['status[$ne]']],
    ['limit=0&status=paid&page=2', ['limit', 'status', 'page']],
  ])('refuses ?%s, naming each parameter at fault', async (query, fields) => {
    const { key } = await service.account();
    const { id } = await settledPayment(service, key);
    const answer = await call(service.url, 'GET', `${pathOf(id)}?${query}`, { key });
    expectRefusal(answer, 'invalid_request', fields);
  });

  test.each(['', 'yesterday', '2026-01-02', '2026-02-30T00:00:00Z', '2026-01-02T03:04:05'])(
    'refuses created_before "%s" as invalid_cursor',
    async (created_before) => {
      const { key } = await service.account();
      const { id } = await settledPayment(service, key);
      const answer = await get(key, pathOf(id), { created_before });
      expectRefusal(answer, 'invalid_cursor', ['created_before']);
    },
  );
});

test('the list of a payment has its own refunds only', async () => {
  const { key, payment_id, stored } = await shopWithRefund();
  const second = (await settledPayment(service, key)).id;
  const other = await refund(key, second);
  expect(ids((await get(key, `/v1/payments/${payment_id}/refunds`)).body.data)).toEqual([
    stored._id,
  ]);
  expect(ids((await get(key, `/v1/payments/${second}/refunds`)).body.data)).toEqual([other]);
  expect(ids((await get(key, '/v1/refunds')).body.data)).toEqual([other, stored._id]);
});

test('a payment that nobody has has no list', async () => {
  const { key } = await service.account();
  expectRefusal(await get(key, '/v1/payments/some-id/refunds'), 'payment_not_found');
});
