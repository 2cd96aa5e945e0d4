import { randomInt } from 'node:crypto';
import { positionOf } from '../../src/domain/cursor';
import { payTokenHash } from '../../src/keys/pay-token';
import type { PaymentDocument } from '../../src/store/payments';
import { call, idealPayment } from '../support/http';
import { openKey, type Service, startService } from '../support/service';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

let service: Service;

beforeAll(async () => {
  service = await startService();
});
afterAll(async () => service?.stop());

const list = (key: string, query: Record<string, string> | string = {}) =>
  call(service.url, 'GET', `/v1/payments?${new URLSearchParams(query)}`, { key });
const create = (key: string, changes: object = {}) =>
  call(service.url, 'POST', '/v1/payments', { key, body: idealPayment({ ...changes }) });
const walk = (key: string, query: Record<string, string>) =>
  walkPages((page) => list(key, page), query);

/** Rows as the service writes them, many in one millisecond. */
async function insert(account_id: string, count: number, at: string, changes: object = {}) {
  const { body } = await create(await openKey(service.stores, account_id, false));
  const like = await service.stores.payments.get(body.id);
  if (like === null) throw new Error('The payment is not stored.');
  const ties = new Set<number>();
  while (ties.size < count) ties.add(randomInt(1_000_000));
  const rows = [...ties].map((tie): PaymentDocument => {
    const _id = crypto.randomUUID();
    const position = positionOf(Date.parse(at), tie);
    return { ...like, _id, position, token_hash: payTokenHash(_id), created_at: at, ...changes };
  });
  const { mongo } = service;
  await mongo.withSession(async (session) => {
    for (const row of rows) await service.stores.payments.insert(row, session);
  });
  return { like, rows };
}

test('payments created at the same time come in pages of 7, each exactly once', async () => {
  const { key } = await service.account();
  const made: string[] = [];
  const creator = async () => {
    for (let i = 0; i < 20; i += 1) {
      const { status, body } = await create(key);
      expect(status).toBe(201);
      made.push(body.id);
    }
  };
  await Promise.all(Array.from({ length: 20 }, creator));
  expect(made).toHaveLength(400);
  const pages = await walk(key, { limit: '7' });
  expect(pages.slice(0, -1).every((page) => page.length === 7)).toBe(true);
  expect(pages).toHaveLength(Math.ceil(400 / 7));
  const seen = pages.flat();
  expect(new Set(seen).size).toBe(seen.length);
  expect([...seen].sort()).toEqual([...made].sort());
  expect((await walk(key, { limit: '100' })).flat()).toEqual(seen);
}, 120_000);

test('thousands of rows of one millisecond come each exactly once', async () => {
  const { account_id, key } = await service.account();
  const { like, rows } = await insert(account_id, 2_000, '2026-01-02T03:04:05.678Z');
  const pages = await walk(key, { limit: '93' });
  const wanted = [like._id, ...rows.map(({ _id }) => _id)];
  expect(pages.flat()).toHaveLength(wanted.length);
  expect([...pages.flat()].sort()).toEqual([...wanted].sort());
});

test('a page is newest first and has 25 rows unless told', async () => {
  const { account_id, key } = await service.account();
  await insert(account_id, 30, '2026-01-02T03:04:05.678Z');
  await insert(account_id, 30, '2026-01-02T03:04:05.679Z');
  const { body } = await list(key);
  expect(body.data).toHaveLength(25);
  const all: { created_at: string }[] = (await list(key, { limit: '100' })).body.data;
  const times = all.map(({ created_at }) => created_at);
  expect(times).toHaveLength(62);
  expect(times).toEqual([...times].sort().reverse());
});

test('an account without payments has an empty last page', async () => {
  const { key } = await service.account();
  expect((await list(key)).body).toEqual({
    object: 'list',
    data: [],
    has_more: false,
    next_cursor: null,
  });
});

test('a last page that is full has no next one', async () => {
  const { key } = await service.account();
  const made = [await create(key), await create(key)].map(({ body }) => body);
  const { body } = await list(key, { limit: '2' });
  expect(body).toEqual({
    object: 'list',
    data: made.reverse(),
    has_more: false,
    next_cursor: null,
  });
});

test('status, method and reference filter exactly, alone and together', async () => {
  const { key } = await service.account();
  const card = { method: 'visa', reference: 'A-1' };
  const one = (await create(key, { reference: 'A-1' })).body.id;
  const two = (await create(key, card)).body.id;
  const three = (await create(key, { reference: 'a-1' })).body.id;
  const four = (await create(key, { reference: 'A-10 & more/50%+é' })).body.id;
  await call(service.url, 'POST', `/v1/payments/${two}/cancel`, { key });
  const found = async (query: Record<string, string>) => ids((await list(key, query)).body.data);
  expect(await found({ reference: 'A-1' })).toEqual([two, one]);
  expect(await found({ reference: 'A-10 & more/50%+é' })).toEqual([four]);
  expect(await found({ reference: '.*' })).toEqual([]);
  expect(await found({ reference: '' })).toEqual([]);
  expect(await found({ method: 'visa' })).toEqual([two]);
  expect(await found({ status: 'cancelled' })).toEqual([two]);
  expect(await found({ status: 'awaiting_customer' })).toEqual([four, three, one]);
  expect(await found({ status: 'settled' })).toEqual([]);
  expect(await found({ status: 'cancelled', method: 'ideal', reference: 'A-1' })).toEqual([]);
  expect((await walk(key, { limit: '1', method: 'ideal' })).flat()).toEqual([four, three, one]);
});

test("another account's and another environment's payments never appear", async () => {
  const { account_id, key } = await service.account();
  const mine = (await create(key)).body.id;
  const other = await service.account();
  const theirs = (await create(other.key)).body.id;
  const { rows } = await insert(account_id, 3, '2026-01-02T03:04:05.678Z', { livemode: true });
  const live = await openKey(service.stores, account_id, true);
  expect(ids((await list(other.key)).body.data)).toEqual([theirs]);
  expect(ids((await list(live)).body.data).sort()).toEqual(rows.map(({ _id }) => _id).sort());
  expect(ids((await list(key, { reference: 'order-1001' })).body.data)).toHaveLength(2);
  expect(ids((await list(key)).body.data)).toContain(mine);
});

describe('created_before', () => {
  let key: string;
  const at = '2026-01-02T03:04:05.678Z';
  beforeAll(async () => {
    const account = await service.account();
    key = account.key;
    await insert(account.account_id, 3, at);
  });

  test.each([
    ['2026-01-02T03:04:05.678Z', 0],
    ['2026-01-02T03:04:05.679Z', 3],
    ['2026-01-02T03:04:05.678999999Z', 3],
    ['2026-01-02T03:04:05.6789999Z', 3],
    ['2026-01-02T03:04:05Z', 0],
    ['2026-01-02T03:04:06Z', 3],
    ['2026-01-02T03:04:05.7Z', 3],
    ['2026-01-02T04:04:05.679+01:00', 3],
    ['2026-01-01T22:04:05.679-05:00', 3],
    ['2026-01-02T03:04:05.679+00:30', 0],
    ['0001-01-01T00:00:00Z', 0],
  ])('%s gives the rows before that moment', async (created_before, rows) => {
    expect((await list(key, { created_before })).body.data).toHaveLength(rows);
  });

  test('with a + that a query string turned into a space is understood', async () => {
    const path = '/v1/payments?created_before=2026-01-02T04:04:05.679+01:00';
    expect((await call(service.url, 'GET', path, { key })).body.data).toHaveLength(3);
  });

  test.each([
    ...['', 'yesterday', '2026-01-02', '2026-01-02T03:04:05', '2026-02-30T00:00:00Z'],
    ...['2026-01-02T24:00:00Z', '2026-01-02T03:04:60Z', '2026-01-02T03:04:05.0123456789Z'],
    ...['1767323045', '2026-01-02T03:04:05Z ', '2026-01-02T03:04:05+25:00', '{"$gt":""}'],
  ])('"%s" is refused as invalid_cursor', async (created_before) => {
    expectRefusal(await list(key, { created_before }), 'invalid_cursor', ['created_before']);
  });
});

test.each([
  ...['0', '101', '-1', '1.0', '1e1', '', 'ten', '٣', '0x10', '99999999999999999999'].map(
    (limit) => [`limit=${encodeURIComponent(limit)}`, ['limit']] as const,
  ),
  ['status=paid', ['status']],
  ['status=', ['status']],
  ['method=IDEAL', ['method']],
  [`reference=${'x'.repeat(256)}`, ['reference']],
  ['limit=1&limit=1', ['limit']],
  ['status=settled&status=failed', ['status']],
  ['reference[$ne]=1', ['reference[$ne]']],
  ['page=2', ['page']],
  ['Limit=2', ['Limit']],
  ['__proto__=1&constructor=2', ['__proto__', 'constructor']],
  ['limit=0&status=paid&page=2', ['limit', 'status', 'page']],
] as const)('?%s is refused, naming each parameter at fault', async (query, fields) => {
  const { key } = await service.account();
  const answer = await call(service.url, 'GET', `/v1/payments?${query}`, { key });
  expectRefusal(answer, 'invalid_request', fields);
});
