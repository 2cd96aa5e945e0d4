import { inTransaction } from '../../src/base/mongo';
import type { ErrorCode } from '../../src/domain/errors';
import { ENDPOINTS } from '../../src/domain/wire';
import { makeKey } from '../../src/store/keys';
import { type Answer, call, createClient, eventually, idealPayment } from '../support/http';
import { openKey, useService } from '../support/service';
import { exchange } from './exchange';
import { expectRefusal } from './refusal';

const PAYMENTS = '/v1/payments';

const service = useService();

afterEach(() => jest.restoreAllMocks());

const get = (path: string, key: string) => call(service.url, 'GET', path, { key });
const post = (path: string, key: string, body?: unknown) =>
  call(service.url, 'POST', path, { key, body });
const authorized = (value: string) =>
  exchange(service.url, {
    method: 'GET',
    path: PAYMENTS,
    headers: [['Authorization', value]],
  });
const findKey = async (account_id: string) => (await service.stores.keys.forAccount(account_id))[0];

test.each([
  ['of another scheme', 'Basic c2tfc2FuZGJveF86'],
  ['without a key', 'Bearer'],
  ['with two keys', 'Bearer a b'],
  ['of endless length', `Bearer sk_sandbox_${'a'.repeat(5_000)}`],
  ['with a key nobody has', `Bearer ${makeKey(false)}`],
  ['with a key of other letters', 'Bearer \xe9\xe8'],
])('an Authorization header %s is refused', async (_, value) => {
  const answer = await authorized(value);
  expectRefusal(answer, 'api_key_invalid');
  expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer');
});

test('a key is refused when it is cut, extended, or in other letters', async () => {
  const { key } = await service.account();
  const others = [key.slice(0, -1), `${key}A`, key.toUpperCase(), key.replace('sandbox', 'live')];
  for (const value of others) expectRefusal(await authorized(`Bearer ${value}`), 'api_key_invalid');
  expect((await authorized(`bearer  ${key}`)).status).toBe(200);
});

test('a text that does not have the form of a key is refused without reading the database', async () => {
  await service.withApp({}, async (url) => {
    const find = jest.spyOn(service.stores.keys, 'byHash');
    for (const text of ['x', 'sk_live_', `sk_test_${'a'.repeat(43)}`, `${makeKey(false)}a`]) {
      expectRefusal(await createClient(url, text).get(PAYMENTS), 'api_key_invalid');
    }
    expect(find).not.toHaveBeenCalled();
    expectRefusal(await createClient(url, makeKey(false)).get(PAYMENTS), 'api_key_invalid');
    expect(find).toHaveBeenCalledTimes(1);
  });
});

test('a key is refused by scope, address, age and revocation, and the log has a line for each answer', async () => {
  const { account_id, key } = await service.account({ scopes: ['payments:read'] });
  const row = await findKey(account_id);
  const other = await openKey(service.stores, account_id, false);
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const networks = {
    here: ['203.0.113.0/24', '127.0.0.0/8', '::1'],
    elsewhere: ['203.0.113.0/24'],
  };
  const expected: [answer: Answer, line: object][] = [];
  const log = await service.withApp({}, async (url) => {
    const ask = async (code: ErrorCode | null, change: object, path = PAYMENTS, by = key) => {
      await service.collection('api_keys').updateOne({ hash: row?.hash }, { $set: change });
      const answer = await call(url, 'GET', path, { key: by });
      if (code !== null) expectRefusal(answer, code);
      const isUnauthorized = answer.status === 401;
      expect(answer.headers.get('WWW-Authenticate')).toBe(isUnauthorized ? 'Bearer' : null);
      expected.push([answer, code === null ? { method: 'GET', route: path } : { code }]);
    };
    await ask(null, { expires_at: inAnHour, allowed_cidrs: networks.here });
    await ask('api_key_scope_insufficient', {}, '/v1/refunds');
    await ask('api_key_address_refused', { allowed_cidrs: networks.elsewhere });
    const now = new Date().toISOString();
    await ask('api_key_expired', { allowed_cidrs: networks.here, expires_at: now });
    await ask('api_key_revoked', { revoked_at: now });
    await ask('api_key_invalid', {}, PAYMENTS, makeKey(false));
    expect((await createClient(url, other).get(PAYMENTS)).status).toBe(200);
  });
  const lines = log.split('\n').filter((line) => line.includes('answered'));
  const found = expected.map(([{ status, headers }, fields], n) => {
    const line = lines.find((each) => each.includes(headers.get('Request-Id') ?? '-')) ?? '{}';
    const address = expect.stringMatching(/^(127\.0\.0\.1|::1)$/);
    // The last one is a key of nobody.
    const of = n < 5 ? { key_id: row?._id, account_id, livemode: false } : {};
    expect(JSON.parse(line)).toMatchObject({ status, address, ...fields, ...of });
    return 'key_id' in JSON.parse(line);
  });
  expect(found).toEqual([true, true, true, true, true, false]);
});

test('a payment shows its customer only to keys that may read payments', async () => {
  const { account_id, key } = await service.account();
  const writer = await openKey(service.stores, account_id, false, ['payments:write']);
  const customer = { email: 'ada@example.com', first_name: 'Ada', last_name: null };
  const whole = { ...customer, reference: 'c-7' };
  const hidden = { email: null, first_name: null, last_name: null, reference: 'c-7' };
  const create = async () => (await post(PAYMENTS, writer, idealPayment({ customer: whole }))).body;
  const [first, second] = [await create(), await create()];
  // Its caller has named them.
  expect(first.customer).toEqual(whole);
  const acts = [
    [`/v1/payments/${first.id}/cancel`, {}],
    [`/v1/sandbox/payments/${second.id}/simulate`, { event: 'authorized' }],
  ] as const;
  for (const [path, body] of acts) {
    expect((await post(path, writer, body)).body).toMatchObject({ customer: hidden });
    expect((await post(path, key, body)).body).toMatchObject({ customer: whole });
  }
});

test('a key has the time of its last use, which a refused request does not change', async () => {
  const { account_id, key } = await service.account({ scopes: ['refunds:read'] });
  const readLastUse = async () => (await findKey(account_id))?.last_used_at;
  expectRefusal(await get(PAYMENTS, key), 'api_key_scope_insufficient');
  expect(await readLastUse()).toBeNull();
  const before = new Date().toISOString();
  await get('/v1/payment-methods', key);
  const used = await eventually('its use', readLastUse);
  expect(used >= before && used <= new Date().toISOString()).toBe(true);
});

test('a frozen account can only read, with every key', async () => {
  const { accounts } = service.stores;
  const { account_id, key } = await service.account();
  const live = await openKey(service.stores, account_id, true);
  const { body } = await post(PAYMENTS, key, idealPayment());
  const frozen = { at: body.created_at, reason: 'Leak' };
  await inTransaction(service.mongo, (session) => accounts.freeze(account_id, frozen, session));
  for (const each of [key, live]) {
    for (const { method, path } of ENDPOINTS.filter((endpoint) => endpoint.method !== 'get')) {
      const address = path.replaceAll(/\{\w+\}/g, body.id);
      const answer = await call(service.url, method.toUpperCase(), address, { key: each });
      expectRefusal(answer, 'account_frozen');
    }
  }
  expect((await get(`/v1/payments/${body.id}`, key)).body).toEqual(body);
  expect(await service.collection('idempotency_records').countDocuments({ account_id })).toBe(1);
  await inTransaction(service.mongo, (session) => accounts.unfreeze(account_id, session));
  expect((await post(`/v1/payments/${body.id}/cancel`, key)).body.status).toBe('cancelled');
});
