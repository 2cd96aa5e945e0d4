import { randomUUID } from 'node:crypto';
import { CRYPTO_PAYMENT_STATUSES } from '../../src/domain/crypto/payment';
import { CRYPTO_SETTLEMENT_STATUSES } from '../../src/domain/crypto/settlement';
import { buildPosition, TIES } from '../../src/domain/cursor';
import { PAYMENT_STATUSES } from '../../src/domain/payment/payment';
import { PAYOUT_STATUSES } from '../../src/domain/payout/payout';
import { REFUND_STATUSES } from '../../src/domain/refund/refund';
import { buildAccount, buildPayment } from '../support/factories';
import { type Client, idealPayment } from '../support/http';
import { type Account, useService } from '../support/service';
import { storeResources } from '../support/stored-resources';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const OF_PAYMENT = '/v1/payments/{id}/refunds';

/** Lists of the API: where they and one of their rows are, and what parameters they do not have. */
const LISTS = [
  { path: '/v1/payments', statuses: PAYMENT_STATUSES, unknown: ['recipient_id'] },
  {
    path: '/v1/refunds',
    statuses: REFUND_STATUSES,
    unknown: ['method', 'reference', 'payment_id'],
  },
  { path: OF_PAYMENT, statuses: REFUND_STATUSES, unknown: ['method', 'reference', 'payment_id'] },
  { path: '/v1/payouts', statuses: PAYOUT_STATUSES, unknown: ['method', 'recipient_id'] },
  { path: '/v1/crypto/payments', statuses: CRYPTO_PAYMENT_STATUSES, unknown: ['reference'] },
  { path: '/v1/crypto/settlements', statuses: CRYPTO_SETTLEMENT_STATUSES, unknown: ['asset'] },
];
/** Moment in which the rows of a test are created. */
const OLD = '2026-01-02T03:04:05.678Z';
/** Rows of one millisecond are inserted in another order than that of their positions. */
const STEP = 618_033;
let tie = 0;

const service = useService();

interface Row {
  _id: string;
}

/** Opens an account without rows, and a way to insert some that are like a stored one. */
async function openList(template: string) {
  const rows = template === OF_PAYMENT ? '/v1/refunds' : template;
  const collection = service.collection<Row>(rows.slice('/v1/'.length).replace('/', '_'));
  const [like, owner] = [await service.account(), await buildAccount(service, { crypto: true })];
  const { ids: stored } = await storeResources(service, { ...like, livemode: false });
  const payment_id = stored.payments;
  const { account_id } = owner;
  const payments = service.collection<Row>('payments');
  if (template === OF_PAYMENT) {
    await payments.updateOne({ _id: payment_id }, { $set: { account_id } });
  }
  const row = await collection.findOne({ account_id: { $in: [like.account_id, account_id] } });
  /** Inserts rows of one millisecond; returns their ids. */
  const insert = async (count: number, created_at = OLD, changes: object = {}) => {
    const documents = Array.from({ length: count }, () => {
      tie = (tie + STEP) % TIES;
      const unique = { _id: randomUUID(), token_hash: randomUUID(), address: randomUUID() };
      const position = buildPosition(Date.parse(created_at), tie);
      return { ...row, account_id, created_at, position, ...unique, ...changes };
    });
    await collection.insertMany(documents);
    return documents.map(({ _id }) => _id);
  };
  return { ...owner, rows, insert, path: template.replace('{id}', payment_id) };
}

describe.each(LISTS)('the list $path', ({ path, statuses, unknown }) => {
  let list: Awaited<ReturnType<typeof openList>>;
  beforeEach(async () => {
    list = await openList(path);
  });

  const get = (query: Record<string, string> = {}, as: Client = list) =>
    as.get(`${list.path}?${new URLSearchParams(query)}`);
  const count = async (query: Record<string, string>) => (await get(query)).body.data.length;

  test('is newest first, each row as a read shows it', async () => {
    const page = { object: 'list', has_more: false, next_cursor: null };
    expect((await get()).body).toEqual({ ...page, data: [] });
    const inserted: string[] = [];
    for (const at of ['2026-01-02T00:00:00.000Z', '2026-01-02T00:00:00.001Z', OLD]) {
      inserted.push(...(await list.insert(1, at)));
    }
    const { status, body } = await get();
    const reads = inserted.reverse().map((id) => list.get(`${list.rows}/${id}`));
    const data = (await Promise.all(reads)).map((each) => each.body);
    expect([status, body]).toEqual([200, { ...page, data }]);
  });

  test('gives hundreds of rows of one millisecond once each', async () => {
    const inserted = await list.insert(300);
    const pages = await walkPages(get, { limit: '37' });
    expect(pages.slice(0, -1).every((page) => page.length === 37)).toBe(true);
    expect(pages.flat().toSorted()).toEqual(inserted.toSorted());
  });

  test('gives every row once while new ones are created', async () => {
    const inserted = await list.insert(20);
    const readPage = async (query: Record<string, string>) => {
      const page = await get(query);
      await list.insert(1, new Date().toISOString());
      return page;
    };
    const pages = await walkPages(readPage, { limit: '8' });
    expect(pages.flat().toSorted()).toEqual(inserted.toSorted());
  });

  test('has 25 rows a page by default, and no page after a full last one', async () => {
    await list.insert(30);
    expect(await count({})).toBe(25);
    const all = (await get({ limit: '30' })).body;
    expect([all.data.length, all.has_more, all.next_cursor]).toEqual([30, false, null]);
    expect((await get({ limit: '29' })).body.has_more).toBe(true);
  });

  test.each(statuses)('filters by the status %s, also page by page', async (status) => {
    const inserted = await list.insert(5, OLD, { status });
    for (const other of statuses) {
      if (other !== status) await list.insert(1, OLD, { status: other });
    }
    const pages = await walkPages(get, { status, limit: '2' });
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(pages.flat().toSorted()).toEqual(inserted.toSorted());
  });

  test('filters by the time before which rows were created', async () => {
    await list.insert(3);
    expect(await count({ created_before: '2026-01-02T03:04:05.678Z' })).toBe(0);
    expect(await count({ created_before: '2026-01-02T03:04:05.678999999Z' })).toBe(3);
    expect(await count({ created_before: '2026-01-01T22:04:05.679-05:00' })).toBe(3);
    expect(await count({ created_before: '2026-01-02T03:04:05.679+00:30' })).toBe(0);
    // A query string turns the + of an offset into a space.
    const spaced = `${list.path}?created_before=2026-01-02T04:04:05.679+01:00`;
    expect((await list.get(spaced)).body.data).toHaveLength(3);
    for (const created_before of ['', 'yesterday', '2026-01-02T03:04:05', '{"$gt":""}']) {
      expectRefusal(await get({ created_before }), 'invalid_cursor', ['created_before']);
    }
  });

  test('never shows a row of another account, environment or payment', async () => {
    const [own] = await list.insert(1);
    const live = await list.insert(3, OLD, { livemode: true });
    const other = await buildAccount(service, { crypto: true });
    const liveKey = await service.withKey(list, true);
    if (path === OF_PAYMENT) {
      await list.insert(1, OLD, { payment_id: randomUUID() });
      for (const each of [other, liveKey]) expectRefusal(await get({}, each), 'payment_not_found');
    } else {
      expect((await get({}, other)).body.data).toEqual([]);
      const shown = (await get({}, liveKey)).body.data;
      expect(ids(shown).toSorted()).toEqual(live.toSorted());
      // A refund does not say its environment.
      for (const row of shown) expect(row.livemode ?? true).toBe(true);
    }
    expect(ids((await get()).body.data)).toEqual([own]);
  });

  test.each([
    ...['0', '101', '-1', '1.0', '1e1', '', 'ten', '٣', '0x10', '99999999999999999999'].map(
      (limit): [string, string[]] => [`limit=${limit}`, ['limit']],
    ),
    ...unknown.map((name): [string, string[]] => [`${name}=ideal`, [name]]),
    ['status=paid', ['status']],
    ['status=', ['status']],
    ['limit=1&limit=1', ['limit']],
    ['status=failed&status=failed', ['status']],
    ['status[$ne]=failed', ['status[$ne]']],
    ['Limit=2', ['Limit']],
    ['__proto__=1&constructor=2', ['__proto__', 'constructor']],
    ['limit=0&status=paid&page=2', ['limit', 'status', 'page']],
  ])('refuses ?%s, and names each wrong parameter', async (query, fields) => {
    expectRefusal(await list.get(`${list.path}?${query}`), 'invalid_request', fields);
  });
});

describe('the list of payments', () => {
  const get = (shop: Account, query: Record<string, string>) =>
    shop.get(`/v1/payments?${new URLSearchParams(query)}`);

  test('gives payments that are created at the same time once each', async () => {
    const shop = await service.account();
    const created = await Promise.all(Array.from({ length: 40 }, () => buildPayment(shop)));
    const walk = (limit: string) => walkPages((page) => get(shop, page), { limit });
    const pages = await walk('7');
    expect(pages.map((page) => page.length)).toEqual([7, 7, 7, 7, 7, 5]);
    expect(pages.flat().toSorted()).toEqual(ids(created).toSorted());
    expect((await walk('100')).flat()).toEqual(pages.flat());
  });

  test('filters by status, method and reference of its account, alone and together', async () => {
    const [shop, other] = [await service.account(), await service.account()];
    const create = async (changes: object) =>
      (await shop.post('/v1/payments', idealPayment({ ...changes }))).body.id;
    const one = await create({ reference: 'A-1' });
    const two = await create({ method: 'visa', reference: 'A-1' });
    const three = await create({ reference: 'a-1' });
    const four = await create({ reference: 'A-10 & more/50%+é' });
    await buildPayment(other, { reference: 'A-1' });
    await shop.post(`/v1/payments/${two}/cancel`);
    const cases: [query: Record<string, string>, found: string[]][] = [
      [{ reference: 'A-1' }, [two, one]],
      [{ reference: 'A-10 & more/50%+é' }, [four]],
      [{ reference: '.*' }, []],
      [{ reference: '' }, []],
      [{ method: 'visa' }, [two]],
      [{ status: 'cancelled' }, [two]],
      [{ status: 'awaiting_customer' }, [four, three, one]],
      [{ status: 'settled' }, []],
      [{ status: 'cancelled', method: 'ideal', reference: 'A-1' }, []],
    ];
    for (const [query, found] of cases) {
      expect([query, ids((await get(shop, query)).body.data)]).toEqual([query, found]);
    }
    const ideal = await walkPages((page) => get(shop, page), { limit: '1', method: 'ideal' });
    expect(ideal.flat()).toEqual([four, three, one]);
    for (const [field, value] of [
      ['method', 'IDEAL'],
      ['reference', 'x'.repeat(256)],
      ['reference[$ne]', '1'],
    ] as const) {
      expectRefusal(await get(shop, { [field]: value }), 'invalid_request', [field]);
    }
  });
});
