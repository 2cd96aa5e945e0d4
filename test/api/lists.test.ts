import { randomUUID } from 'node:crypto';
import { CRYPTO_PAYMENT_STATUSES } from '../../src/domain/crypto/payment';
import { CRYPTO_SETTLEMENT_STATUSES } from '../../src/domain/crypto/settlement';
import { buildPosition, TIES } from '../../src/domain/cursor';
import { PAYMENT_STATUSES } from '../../src/domain/payment/payment';
import { PAYOUT_STATUSES } from '../../src/domain/payout/payout';
import { REFUND_STATUSES } from '../../src/domain/refund/refund';
import { buildAccount, buildPayment, buildRefund } from '../support/factories';
import { type Client, idealPayment } from '../support/http';
import { useService } from '../support/service';
import { storeResources } from '../support/stored-resources';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

/** Lists of the API that have the same parameters. */
const LISTS = [
  { path: '/v1/payments', statuses: PAYMENT_STATUSES },
  { path: '/v1/refunds', statuses: REFUND_STATUSES },
  { path: '/v1/payouts', statuses: PAYOUT_STATUSES },
  { path: '/v1/crypto/payments', statuses: CRYPTO_PAYMENT_STATUSES },
  { path: '/v1/crypto/settlements', statuses: CRYPTO_SETTLEMENT_STATUSES },
];
/** Moment in which the rows of a test are created. */
const OLD = '2026-01-02T03:04:05.678Z';
/** Rows of one millisecond are inserted in another order than that of their positions. */
const STEP = 618_033;
let tie = 0;

const service = useService();

/** Opens an account without rows, and a way to insert some that are like a stored one. */
async function openList(path: string) {
  const name = path.slice('/v1/'.length).replace('/', '_');
  const collection = service.collection<{ _id: string }>(name);
  const [like, owner] = [await service.account(), await buildAccount(service, { crypto: true })];
  await storeResources(service, { ...like, livemode: false });
  const row = await collection.findOne({ account_id: like.account_id });
  const { account_id } = owner;
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
  return { ...owner, insert };
}

describe.each(LISTS)('the list $path', ({ path, statuses }) => {
  let list: Awaited<ReturnType<typeof openList>>;
  beforeEach(async () => {
    list = await openList(path);
  });

  const get = (query: Record<string, string> = {}, as: Client = list) =>
    as.get(`${path}?${new URLSearchParams(query)}`);

  test('is newest first, each row as a read shows it', async () => {
    const page = { object: 'list', has_more: false, next_cursor: null };
    expect((await get()).body).toEqual({ ...page, data: [] });
    const inserted: string[] = [];
    for (const at of ['2026-01-02T00:00:00.000Z', '2026-01-02T00:00:00.001Z', OLD]) {
      inserted.push(...(await list.insert(1, at)));
    }
    const { status, body } = await get();
    const reads = inserted.reverse().map((id) => list.get(`${path}/${id}`));
    const data = (await Promise.all(reads)).map((each) => each.body);
    expect([status, body]).toEqual([200, { ...page, data }]);
  });

  test('gives hundreds of rows of one millisecond once each, also while new ones are created', async () => {
    const inserted = await list.insert(300);
    const readPage = async (query: Record<string, string>) => {
      const page = await get(query);
      await list.insert(1, new Date().toISOString());
      return page;
    };
    const pages = await walkPages(readPage, { limit: '37' });
    expect(pages.slice(0, -1).every((page) => page.length === 37)).toBe(true);
    expect(pages.flat().toSorted()).toEqual(inserted.toSorted());
  });

  test('has 25 rows a page by default, and no page after a full last one', async () => {
    await list.insert(30);
    expect((await get()).body.data).toHaveLength(25);
    const all = (await get({ limit: '30' })).body;
    expect([all.data.length, all.has_more, all.next_cursor]).toEqual([30, false, null]);
    expect((await get({ limit: '29' })).body.has_more).toBe(true);
  });

  test('filters by each status, also page by page', async () => {
    const inserted = new Map<string, string[]>();
    for (const status of statuses) inserted.set(status, await list.insert(5, OLD, { status }));
    for (const [status, rows] of inserted) {
      const pages = await walkPages(get, { status, limit: '2' });
      expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
      expect(pages.flat().toSorted()).toEqual(rows.toSorted());
    }
  });

  test('never shows a row of another account or environment', async () => {
    const [own] = await list.insert(1);
    const live = await list.insert(3, OLD, { livemode: true });
    expect((await get({}, await buildAccount(service, { crypto: true }))).body.data).toEqual([]);
    const shown = (await get({}, await service.withKey(list, true))).body.data;
    expect(ids(shown).toSorted()).toEqual(live.toSorted());
    // A refund does not say its environment.
    for (const row of shown) expect(row.livemode ?? true).toBe(true);
    expect(ids((await get()).body.data)).toEqual([own]);
  });

  test('refuses wrong parameters, and names each', async () => {
    const limits = ['0', '101', '1.0', '1e1', '', '٣', '99999999999999999999', '1&limit=1'];
    for (const [query, ...fields] of [
      ...limits.map((limit) => [`limit=${limit}`, 'limit'] as const),
      ['status=failed&status=failed', 'status'],
      ['status[$ne]=failed', 'status[$ne]'],
      ['__proto__=1&constructor=2', '__proto__', 'constructor'],
      ['limit=0&status=paid&page=2', 'limit', 'status', 'page'],
    ] as const) {
      expectRefusal(await list.get(`${path}?${query}`), 'invalid_request', fields);
    }
    expectRefusal(await get({ created_before: 'now' }), 'invalid_cursor', ['created_before']);
  });
});

const listPayments = (shop: Client) => (query: Record<string, string>) =>
  shop.get(`/v1/payments?${new URLSearchParams(query)}`);

test('the list of payments gives those that are created at once, one time each', async () => {
  const shop = await service.account();
  const created = await Promise.all(Array.from({ length: 40 }, () => buildPayment(shop)));
  const pages = await walkPages(listPayments(shop), { limit: '7' });
  expect(pages.flat().toSorted()).toEqual(ids(created).toSorted());
});

test('the list of the refunds of a payment has only those, for its owner', async () => {
  const shop = await service.account();
  const { id: payment_id } = await buildPayment(shop, { status: 'settled' });
  const path = `/v1/payments/${payment_id}/refunds`;
  const first = await buildRefund(shop, { payment_id, amount: 1 });
  const second = await buildRefund(shop, { payment_id, amount: 2, status: 'settled' });
  await buildRefund(shop, { amount: 3 });
  for (const [query, found] of [
    ['', [second, first]],
    ['?limit=1', [second]],
    ['?status=processing', [first]],
  ] as const) {
    expect((await shop.get(`${path}${query}`)).body.data).toEqual(found);
  }
  for (const other of [await service.account(), await service.withKey(shop, true)]) {
    expectRefusal(await other.get(path), 'payment_not_found');
  }
  expectRefusal(await shop.get(`${path}?method=ideal`), 'invalid_request', ['method']);
});

test('the list of payments filters by status, method and reference, alone and together', async () => {
  const [shop, other] = [await service.account(), await service.account()];
  const get = listPayments(shop);
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
    expect([query, ids((await get(query)).body.data)]).toEqual([query, found]);
  }
  const ideal = await walkPages(get, { limit: '1', method: 'ideal' });
  expect(ideal.flat()).toEqual([four, three, one]);
  for (const [field, value] of [
    ['method', 'IDEAL'],
    ['reference', 'x'.repeat(256)],
    ['reference[$ne]', '1'],
  ] as const) {
    expectRefusal(await get({ [field]: value }), 'invalid_request', [field]);
  }
});
