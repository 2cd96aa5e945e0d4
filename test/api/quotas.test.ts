import { randomUUID } from 'node:crypto';
import { makeKey } from '../../src/store/keys';
import { gate } from '../support/gate';
import { type Answer, type Client, createClient, eventually } from '../support/http';
import { useService } from '../support/service';
import { bankRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';
import { inOneWindow } from './window';

/** Each a second; a window has ten. */
const LIMITS = {
  RATE_LIMIT_PER_SECOND: 2,
  ACCOUNT_LIMIT_PER_SECOND: 3,
  SANDBOX_CREATE_LIMIT_PER_SECOND: 1,
  CREATE_LIMIT_PER_SECOND: 1,
};

const service = useService({ worker: false, limits: LIMITS });

afterEach(() => jest.restoreAllMocks());

const get = (shop: Client) => shop.get('/v1/payment-methods/available');
const create = (shop: Client) => shop.post('/v1/payout-recipients', bankRecipient());
const statuses = async (calls: Promise<Answer>[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(calls)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};
const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make);

test(
  'all keys of an account share its limit; its other environment has one of its own',
  inOneWindow(async () => {
    const shop = await service.account();
    const second = await service.withKey(shop, false);
    expect(await statuses(times(20, () => get(shop)))).toEqual({ 200: 20 });
    expect(await statuses(times(15, () => get(second)))).toEqual({ 200: 10, 429: 5 });
    const refused = await get(second);
    expectRefusal(refused, 'rate_limited');
    expect(refused.body.error.message).toContain('account: at most 3 a second');
    expect(refused.headers.get('RateLimit-Limit')).toBe('30');
    expect(refused.headers.get('RateLimit-Remaining')).toBe('0');
    const live = await service.withKey(shop, true);
    expect((await get(live)).status).toBe(200);
    const other = await service.account();
    expect((await get(other)).status).toBe(200);
  }),
);

test(
  'a list counts one more for each ten rows that it may have',
  inOneWindow(async () => {
    const shop = await service.account();
    const list = (query: string) => shop.get(`/v1/payments${query}`);
    const left = async (query: string) =>
      Number((await list(query)).headers.get('RateLimit-Remaining'));
    expect([await left(''), await left('?limit=9'), await left('?limit=100')]).toEqual([17, 16, 5]);
    const refused = await list('?limit=100');
    expectRefusal(refused, 'rate_limited');
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThanOrEqual(1);
    const unread = await (await service.account()).get('/v1/payments?limit=101');
    expect([unread.status, unread.headers.get('RateLimit-Remaining')]).toEqual([400, '19']);
  }),
);

test(
  'an account that takes its part of the reads leaves others theirs',
  inOneWindow(async () => {
    const [shop, other] = [await service.account(), await service.account()];
    const { list } = service.stores.payments;
    const slow = gate();
    const read = jest.spyOn(service.stores.payments, 'list').mockImplementation(async (filter) => {
      if (filter.account_id === shop.account_id) await slow.opened;
      return await list(filter);
    });
    try {
      const calls = statuses(times(18, () => shop.get('/v1/payments?limit=1')));
      await eventually('the reads to wait', async () => read.mock.calls.length === 15);
      expect((await other.get('/v1/payments?limit=1')).status).toBe(200);
      expect((await create(shop)).status).toBe(201);
      expect(read).toHaveBeenCalledTimes(16);
      slow.release();
      expect(await calls).toEqual({ 200: 18 });
    } finally {
      slow.release();
      read.mockRestore();
    }
  }),
);

test(
  'creates have a tighter limit, in sandbox and live apart; reads go on',
  inOneWindow(async () => {
    const shop = await service.account();
    expect(await statuses(times(12, () => create(shop)))).toEqual({ 201: 10, 429: 2 });
    const refused = await create(shop);
    expectRefusal(refused, 'rate_limited');
    expect(refused.body.error.message).toContain('created by one account: at most 1 a second');
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThanOrEqual(1);
    expect(refused.headers.get('RateLimit-Limit')).toBe('10');
    expect(await shop.count('idempotency')).toBe(10);
    expect((await get(shop)).status).toBe(200);
    const live = await service.withKey(shop, true);
    expect((await create(live)).status).toBe(201);
    const other = await service.account();
    expect((await create(other)).status).toBe(201);
  }),
);

test(
  'a simulation costs as much as a create, also of what is not there',
  inOneWindow(async () => {
    const shop = await service.account();
    const path = `/v1/sandbox/payments/${randomUUID()}/simulate`;
    const simulate = () => shop.post(path, { event: 'settled' });
    expect(await statuses(times(12, simulate))).toEqual({ 404: 10, 429: 2 });
    expectRefusal(await create(shop), 'rate_limited');
  }),
);

test(
  'a key that lacks the scope is limited like any other, and was not used',
  inOneWindow(async () => {
    const shop = await service.account({ scopes: ['payments:read'] });
    expect(await statuses(times(25, () => create(shop)))).toEqual({ 403: 20, 429: 5 });
    const able = await service.withKey(shop, false);
    expect((await create(able)).status).toBe(201);
    const [first] = await service.stores.keys.forAccount(shop.account_id);
    expect(first?.last_used_at).toBeNull();
  }),
);

test('text that has not the shape of a key is refused without a look at the database', async () => {
  const look = jest.spyOn(service.stores.keys, 'byHash');
  for (const text of ['x', 'sk_live_', `sk_test_${'a'.repeat(43)}`, `${makeKey(false)}a`]) {
    expectRefusal(await get(createClient(service.url, text)), 'api_key_invalid');
  }
  expect(look).not.toHaveBeenCalled();
  expectRefusal(await get(createClient(service.url, makeKey(false))), 'api_key_invalid');
  expect(look).toHaveBeenCalledTimes(1);
});
