import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { buildPosition, TIES } from '../../src/domain/cursor';
import { ENDPOINTS } from '../../src/domain/wire';
import { buildAccount, buildPayment, buildRefund } from '../support/factories';
import { type Client, idealPayment } from '../support/http';
import { useService } from '../support/service';
import { storeResources } from '../support/stored-resources';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

/** Lists with pages, each with the schemas of its parameters. */
const LISTS = ENDPOINTS.flatMap(({ path, query }) => {
  const { properties = {} } = query ? z.toJSONSchema(query, { io: 'input' }) : {};
  const isPaged = 'created_before' in properties && !path.includes('{');
  const statuses: unknown[] = Object(properties['status']).enum ?? [];
  return isPaged ? [{ path, names: Object.keys(properties), statuses: statuses.map(String) }] : [];
});
/** Parameters that may have any text. */
const FREE = ['reference', 'resource_id', 'after'];
/** Moment in which the rows of a test are created. */
const OLD = '2026-01-02T03:04:05.678Z';
/** Rows of one millisecond are inserted in another order than that of their positions. */
const STEP = 618_033;
let tie = 0;

const service = useService();

test('the lists are those of docs/api.md', () => {
  expect(LISTS.map(({ path }) => path.replace('/v1/', '')).toSorted()).toEqual([
    ...['balance_transactions', 'crypto/payments', 'crypto/settlements', 'events', 'payments'],
    ...['payouts', 'refunds', 'requests', 'webhook-endpoints'],
  ]);
  expect(LISTS.filter(({ statuses }) => statuses.length > 0)).toHaveLength(5);
});

test.each(LISTS)('the list $path refuses wrong parameters, and names each', async (list) => {
  const { path, names } = list;
  const merchant = await buildAccount(service, { crypto: true });
  const wrong = 'no such value';
  const chosen = names.filter((name) => !FREE.includes(name) && name !== 'created_before');
  const limits = ['0', '101', '1.0', '1e1', '', '٣', '99999999999999999999', '1&limit=1'];
  for (const [parameters, ...fields] of [
    ...limits.map((limit) => [`limit=${limit}`, 'limit'] as const),
    ...chosen.map((name) => [`${name}=${wrong}&page=2`, name, 'page'] as const),
    ...chosen.map((name) => [`${name}[$ne]=1`, `${name}[$ne]`] as const),
    ['limit=5&limit=5', 'limit'],
    ['__proto__=1&constructor=2', '__proto__', 'constructor'],
  ] as const) {
    expectRefusal(await merchant.get(`${path}?${parameters}`), 'invalid_request', fields);
  }
  const answer = await merchant.get(`${path}?created_before=now`);
  expectRefusal(answer, 'invalid_cursor', ['created_before']);
});

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
  const get = (query: Record<string, string> = {}, as: Client = owner) =>
    as.get(`${path}?${new URLSearchParams(query)}`);
  return { ...owner, insert, list: get };
}

describe.each(LISTS.filter(({ statuses }) => statuses.length > 0))('the list $path', ({ path }) => {
  test('is newest first, each row as a read shows it, and never one of another owner', async () => {
    const { insert, list, ...owner } = await openList(path);
    const page = { object: 'list', has_more: false, next_cursor: null };
    expect((await list()).body).toEqual({ ...page, data: [] });
    const inserted: string[] = [];
    for (const at of ['2026-01-02T00:00:00.000Z', '2026-01-02T00:00:00.001Z', OLD]) {
      inserted.push(...(await insert(1, at)));
    }
    const live = await insert(3, OLD, { livemode: true });
    const { status, body } = await list();
    const reads = inserted.reverse().map((id) => owner.get(`${path}/${id}`));
    const data = (await Promise.all(reads)).map((each) => each.body);
    expect([status, body]).toEqual([200, { ...page, data }]);
    const stranger = await buildAccount(service, { crypto: true });
    expect((await list({}, stranger)).body.data).toEqual([]);
    const shown = (await list({}, await service.withKey(owner, true))).body.data;
    expect(ids(shown).toSorted()).toEqual(live.toSorted());
    // A refund does not say its environment.
    for (const each of shown) expect(each.livemode ?? true).toBe(true);
  });

  test('gives the rows of one millisecond once each, also while new ones are created', async () => {
    const { insert, list } = await openList(path);
    const inserted = await insert(80);
    expect((await list()).body.data).toHaveLength(25);
    const all = (await list({ limit: '80' })).body;
    expect([all.data.length, all.has_more, all.next_cursor]).toEqual([80, false, null]);
    expect((await list({ limit: '79' })).body.has_more).toBe(true);
    const readPage = async (query: Record<string, string>) => {
      const page = await list(query);
      await insert(1, new Date().toISOString());
      return page;
    };
    const pages = await walkPages(readPage, { limit: '17' });
    expect(pages.slice(0, -1).every((page) => page.length === 17)).toBe(true);
    expect(pages.flat().toSorted()).toEqual(inserted.toSorted());
  });
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
  const shop = await service.account();
  const get = (query: Record<string, string>) =>
    shop.get(`/v1/payments?${new URLSearchParams(query)}`);
  const create = async (changes: object) =>
    (await shop.post('/v1/payments', idealPayment({ ...changes }))).body.id;
  const one = await create({ reference: 'A-1' });
  const two = await create({ method: 'visa', reference: 'A-1' });
  const three = await create({ reference: 'A-10 & more/50%+é' });
  await shop.post(`/v1/payments/${two}/cancel`);
  for (const [query, found] of [
    [{ reference: 'A-1' }, [two, one]],
    [{ reference: 'A-10 & more/50%+é' }, [three]],
    [{ reference: '.*' }, []],
    [{ reference: '' }, []],
    [{ method: 'visa' }, [two]],
    [{ status: 'awaiting_customer' }, [three, one]],
    [{ status: 'cancelled', method: 'ideal', reference: 'A-1' }, []],
  ] as const) {
    expect([query, ids((await get(query)).body.data)]).toEqual([query, found]);
  }
  expectRefusal(await get({ reference: 'x'.repeat(256) }), 'invalid_request', ['reference']);
});
