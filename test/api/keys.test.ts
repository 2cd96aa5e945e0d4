import { inTransaction } from '../../src/base/mongo';
import { SCOPES } from '../../src/domain/account/api-key';
import { ENDPOINTS } from '../../src/domain/wire';
import { makeKey } from '../../src/store/keys';
import { call, eventually, idealPayment } from '../support/http';
import { openKey, useService } from '../support/service';
import { exchange } from './exchange';
import { expectRefusal } from './refusal';
import { ROUTES, withSomeId } from './routes-setting';

// Reads the log of its API.
const service = useService({ logged: (line) => lines.push(line) });
const lines: string[] = [];

const get = (path: string, key?: string) => call(service.url, 'GET', path, key ? { key } : {});
const post = (path: string, key: string, body?: unknown) =>
  call(service.url, 'POST', path, { key, body });
const authorized = (...values: string[]) =>
  exchange(service.url, {
    method: 'GET',
    path: '/v1/payments',
    headers: values.map((value): [string, string] => ['Authorization', value]),
  });

test.each(ROUTES)('%s %s is refused without a key', async (method, path) => {
  const answer = await call(service.url, method, withSomeId(path));
  expectRefusal(answer, 'api_key_missing');
  expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer');
});

test.each([
  ['of another scheme', 'Basic c2tfc2FuZGJveF86'],
  ['without a key', 'Bearer'],
  ['with two keys', 'Bearer a b'],
  ['of the key alone', 'sk_sandbox_aaaa'],
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

test.each(ROUTES)('%s %s requires the scope %s', async (method, path, scope) => {
  const without = await service.account({ scopes: SCOPES.filter((each) => each !== scope) });
  const answer = await without.send(method, withSomeId(path));
  if (scope === null) expect(answer.status).toBe(200);
  else {
    expectRefusal(answer, 'api_key_scope_insufficient');
    expect(answer.body.error.message).toContain(scope);
    const only = await service.account({ scopes: [scope] });
    const { body } = await only.send(method, withSomeId(path));
    expect(body.error?.code).not.toBe('api_key_scope_insufficient');
  }
});

test('a revoked key is refused from the next request on', async () => {
  const { account_id, key } = await service.account();
  const other = await openKey(service.stores, account_id, false);
  expect((await get('/v1/payments', key)).status).toBe(200);
  const [row] = await service.stores.keys.forAccount(account_id);
  await service.stores.keys.revoke(row?._id ?? '', new Date().toISOString());
  for (let i = 0; i < 3; i += 1) {
    expectRefusal(await get('/v1/payments', key), 'api_key_revoked');
    expectRefusal(await post('/v1/payments', key, idealPayment()), 'api_key_revoked');
  }
  expect((await get('/v1/payments', other)).status).toBe(200);
});

test('a payment shows its customer only to keys that may read payments', async () => {
  const { account_id, key } = await service.account();
  const writer = await openKey(service.stores, account_id, false, ['payments:write']);
  const customer = { email: 'ada@example.com', first_name: 'Ada', last_name: null };
  const whole = { ...customer, reference: 'c-7' };
  const hidden = { email: null, first_name: null, last_name: null, reference: 'c-7' };
  const create = async () =>
    (await post('/v1/payments', writer, idealPayment({ customer: whole }))).body;
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

test('the key alone decides whether a payment is live', async () => {
  const { key } = await service.account();
  expect((await post('/v1/payments', key, idealPayment())).body.livemode).toBe(false);
  expectRefusal(
    await post('/v1/payments', key, { ...idealPayment(), livemode: true }),
    'invalid_request',
    ['livemode'],
  );
});

test('keys have 256 random bits, name their environment, and only a hash is stored', async () => {
  const { account_id, key } = await service.account();
  expect(key).toMatch(/^sk_sandbox_[\w-]{43}$/);
  expect(makeKey(true)).toMatch(/^sk_live_[\w-]{43}$/);
  await post('/v1/payments', key, idealPayment());
  const secret = key.slice('sk_sandbox_'.length);
  const db = service.db;
  for (const { name } of await db.listCollections().toArray()) {
    const rows = await db.collection(name).find({}).toArray();
    expect(JSON.stringify(rows)).not.toContain(secret);
  }
  const [row] = await service.stores.keys.forAccount(account_id);
  expect(row).toMatchObject({
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    last4: key.slice(-4),
  });
});

test('a key has the time of its last use, which a refused request does not change', async () => {
  const { account_id, key } = await service.account({ scopes: ['refunds:read'] });
  const lastUsed = async () => (await service.stores.keys.forAccount(account_id))[0]?.last_used_at;
  expect(await lastUsed()).toBeNull();
  expectRefusal(await get('/v1/payments', key), 'api_key_scope_insufficient');
  expect(await lastUsed()).toBeNull();
  const before = new Date().toISOString();
  await get('/v1/payment-methods', key);
  const used = await eventually('its use', lastUsed);
  expect(used >= before && used <= new Date().toISOString()).toBe(true);
});

/** Finds the line of the log about a call. */
async function findLine(answer: { headers: Headers }): Promise<object> {
  const id = answer.headers.get('Request-Id') ?? 'none';
  const find = async () => lines.find((line) => line.includes(id) && line.includes('answered'));
  return JSON.parse(await eventually('its line', find));
}

test('a key is refused once it has expired', async () => {
  const { account_id, key } = await service.account();
  const keys = service.collection('api_keys');
  const expireAt = (expires_at: number) =>
    keys.updateOne({ account_id }, { $set: { expires_at: new Date(expires_at).toISOString() } });
  await expireAt(Date.now() + 3_600_000);
  expect((await get('/v1/payments', key)).status).toBe(200);
  await expireAt(Date.now());
  const answer = await get('/v1/payments', key);
  expectRefusal(answer, 'api_key_expired');
  expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer');
  const row = await keys.findOne({ account_id });
  const of = { key_id: row?._id, account_id, livemode: false };
  expect(await findLine(answer)).toMatchObject({ ...of, code: 'api_key_expired' });
  await keys.updateOne({ account_id }, { $set: { revoked_at: '2026-01-01T00:00:00.000Z' } });
  const revoked = await findLine(await get('/v1/payments', key));
  expect(revoked).toMatchObject({ ...of, code: 'api_key_revoked' });
});

test('a key is refused from an address outside its networks', async () => {
  const { account_id, key } = await service.account();
  const keys = service.collection('api_keys');
  const allow = (...allowed_cidrs: string[]) =>
    keys.updateOne({ account_id }, { $set: { allowed_cidrs } });
  await allow('203.0.113.0/24', '127.0.0.0/8', '::1');
  expect((await get('/v1/payments', key)).status).toBe(200);
  await allow('203.0.113.0/24');
  const answer = await get('/v1/payments', key);
  expectRefusal(answer, 'api_key_address_refused');
  expect(await findLine(answer)).toMatchObject({ account_id, code: 'api_key_address_refused' });
});

test('the log has a line for each answer, with key, account, address and refusal', async () => {
  const { account_id, key } = await service.account({ scopes: ['payments:read'] });
  const [row] = await service.stores.keys.forAccount(account_id);
  const of = { key_id: row?._id, account_id, livemode: false };
  const from = { address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/) };
  const read = { method: 'GET', route: '/v1/payments', status: 200, ...of, ...from };
  expect(await findLine(await get('/v1/payments', key))).toMatchObject(read);
  const refused = await findLine(await get('/v1/refunds', key));
  expect(refused).toMatchObject({
    status: 403,
    code: 'api_key_scope_insufficient',
    ...of,
    ...from,
  });
  const unknown = await findLine(await get('/v1/payments', makeKey(false)));
  expect(unknown).toMatchObject({ status: 401, code: 'api_key_invalid', ...from });
  expect(unknown).not.toHaveProperty('key_id');
});

test('a frozen account can only read, with every key', async () => {
  const { account_id, key } = await service.account();
  const live = await openKey(service.stores, account_id, true);
  const { body } = await post('/v1/payments', key, idealPayment());
  const db = service.db;
  await inTransaction(service.mongo, (session) =>
    service.stores.accounts.freeze(account_id, { at: body.created_at, reason: 'Leak' }, session),
  );
  for (const each of [key, live]) {
    for (const { method, path } of ENDPOINTS.filter((endpoint) => endpoint.method !== 'get')) {
      const address = path.replaceAll(/\{\w+\}/g, body.id);
      const answer = await call(service.url, method.toUpperCase(), address, { key: each });
      expectRefusal(answer, 'account_frozen');
    }
  }
  expect((await get(`/v1/payments/${body.id}`, key)).body).toEqual(body);
  expect(await db.collection('idempotency').countDocuments({ account_id })).toBe(1);
  await inTransaction(service.mongo, (session) =>
    service.stores.accounts.unfreeze(account_id, session),
  );
  expect((await post(`/v1/payments/${body.id}/cancel`, key)).body.status).toBe('cancelled');
});
