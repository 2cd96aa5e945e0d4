import { randomUUID } from 'node:crypto';
import { parseJson } from '../../src/base/json';
import { inTransaction } from '../../src/base/mongo';
import { type ErrorCode, Refusal } from '../../src/domain/errors';
import { ENDPOINTS } from '../../src/domain/wire';
import { createEncrypter } from '../../src/encryption/encrypter';
import { type CreatedResource, createOnce } from '../../src/service/create-once';
import type { IdempotencyRecord } from '../../src/store/idempotency';
import { makeKey } from '../../src/store/keys';
import { eventually } from '../support/eventually';
import { fundAccount } from '../support/factories';
import { useFreshFixture } from '../support/fixture';
import {
  type Answer,
  type Client,
  call,
  createClient,
  idealPayment,
  readReplayed,
} from '../support/http';
import { openKey, useAccount, useService } from '../support/service';
import { KEYED } from './create-setting';
import { exchange } from './exchange';
import { cardRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';

const service = useService();

const PAYMENTS = '/v1/payments';

afterEach(() => jest.restoreAllMocks());

const get = (path: string, key: string) => call(service.url, 'GET', path, { key });
const post = (path: string, key: string, body?: unknown) =>
  call(service.url, 'POST', path, { key, body });
const authorized = (value: string) =>
  exchange(service.url, { method: 'GET', path: PAYMENTS, headers: [['Authorization', value]] });
const findKey = async (account_id: string) => (await service.stores.keys.forAccount(account_id))[0];

test('an Authorization header that is not exactly the key of somebody is refused, by its form where it can be', async () => {
  const { key } = await service.account();
  const unknown = makeKey(false);
  const changed = [key.slice(0, -1), `${key}A`, key.toUpperCase(), key.replace('sandbox', 'live')];
  for (const header of [
    ...['Basic c2tfc2FuZGJveF86', 'Bearer', `Bearer ${key} ${key}`, 'Bearer \xe9\xe8'],
    ...[`Bearer sk_sandbox_${'a'.repeat(5_000)}`, `Bearer ${unknown}`],
    ...changed.map((each) => `Bearer ${each}`),
  ]) {
    const answer = await authorized(header);
    expectRefusal(answer, 'api_key_invalid');
    expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer');
  }
  expect((await authorized(`bearer  ${key}`)).status).toBe(200);
  await service.withApp({}, async (url) => {
    const find = jest.spyOn(service.stores.keys, 'byHash');
    const misshapen = ['x', 'sk_live_', `sk_test_${'a'.repeat(43)}`, `${unknown}a`];
    for (const text of [...misshapen, unknown]) {
      expectRefusal(await createClient(url, text).get(PAYMENTS), 'api_key_invalid');
    }
    expect(find).toHaveBeenCalledTimes(1);
  });
});

test('a key is refused by scope, address, age and revocation, which is no use of it, and the log has a line for each answer', async () => {
  const { account_id, key } = await service.account({ scopes: ['payments:read'] });
  const row = await findKey(account_id);
  const other = await openKey(service.stores, account_id, false);
  const began = new Date().toISOString();
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
    await ask('api_key_scope_insufficient', {}, '/v1/refunds');
    // A refused request does not count as a use.
    expect((await findKey(account_id))?.last_used_at).toBeNull();
    await ask(null, { expires_at: inAnHour, allowed_cidrs: networks.here });
    await ask('api_key_address_refused', { allowed_cidrs: networks.elsewhere });
    const now = new Date().toISOString();
    await ask('api_key_expired', { allowed_cidrs: networks.here, expires_at: now });
    await ask('api_key_revoked', { revoked_at: now });
    await ask('api_key_invalid', {}, PAYMENTS, makeKey(false));
    expect((await createClient(url, other).get(PAYMENTS)).status).toBe(200);
  });
  const used = await eventually('its use', async () => (await findKey(account_id))?.last_used_at);
  expect(used >= began && used <= new Date().toISOString()).toBe(true);
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
  const customer = {
    email: 'ada@example.com',
    first_name: 'Ada',
    last_name: null,
    reference: 'c-7',
  };
  const hidden = { email: null, first_name: null, last_name: null, reference: 'c-7' };
  for (const [path, body] of [
    ['payments/ID/cancel', {}],
    ['sandbox/payments/ID/simulate', { event: 'authorized' }],
  ] as const) {
    const created = (await post(PAYMENTS, writer, idealPayment({ customer }))).body;
    // Its caller has named them.
    expect(created.customer).toEqual(customer);
    const to = `/v1/${path.replace('ID', created.id)}`;
    expect((await post(to, writer, body)).body).toMatchObject({ customer: hidden });
    expect((await post(to, key, body)).body).toMatchObject({ customer });
  }
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

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;
/** Simultaneous calls with one key. */
const CROWD = 20;
const RECIPIENT = ['/v1/payout-recipients', cardRecipient()] as const;
const ENDPOINT = ['/v1/webhook-endpoints', { url: 'http://127.0.0.1:9/hook' }] as const;
const records = () => service.collection<IdempotencyRecord>('idempotency_records');
const findRecord = ({ account_id }: { account_id: string }, operation: string, key: string) =>
  records().findOne({ account_id, operation, key });

test.each(KEYED)(
  'an idempotency key of $name creates one resource, and answers all its calls alike',
  async ({ name, path, operation, other, refused, open }) => {
    const creator = await open(service);
    const create = (idempotencyKey: string | null, change: object = {}) =>
      creator.post(path, { ...creator.body, ...change }, { idempotencyKey });
    expectRefusal(await create(null), 'idempotency_key_required');
    // Neither another operation nor a refusal uses a key up.
    const [elsewhere, body] = name === 'recipients' ? ENDPOINT : RECIPIENT;
    expect((await creator.post(elsewhere, body, { idempotencyKey: 'key' })).status).toBe(201);
    const [change, code] = refused;
    for (const _ of ['first', 'second']) expectRefusal(await create('key', change), code);
    expect(await findRecord(creator, operation, 'key')).toBeNull();

    const answers = await Promise.all(Array.from({ length: CROWD }, () => create('key')));
    const [first] = answers;
    expect(answers.map(({ status }) => status)).toEqual(Array(CROWD).fill(201));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    // All but the first call, which may be a repeat itself after a 503.
    const replayed = answers.filter(({ headers }) => headers.has('Idempotent-Replayed'));
    expect([CROWD - 1, CROWD]).toContain(replayed.length);
    for (const changed of [other, { extra: 1 }]) {
      const answer = await create('key', changed);
      expectRefusal(answer, 'idempotency_key_reused');
      expect(answer.body.error.message).toContain(first?.body.id);
    }
    if (creator.advance !== undefined) {
      await creator.advance(first?.body.id);
      const read = async () => (await creator.get(`${path}/${first?.body.id}`)).text;
      await eventually('its change', async () => (await read()) !== first?.text);
    }
    const again = await create('key');
    expect([again.status, again.text]).toEqual([201, first?.text]);
    expect(again.headers.get('Idempotent-Replayed')).toBe('true');
    expect(await creator.count(name)).toBe(1);
  },
);

describe('an idempotency key', () => {
  const shop = useAccount(service);
  const create = (idempotencyKey: string, body: unknown = idealPayment(), as: Client = shop) =>
    as.post('/v1/payments', body, { idempotencyKey });

  test.each([
    ['missing', 'idempotency_key_required', []],
    ['empty', 'idempotency_key_required', ['']],
    ['white space', 'idempotency_key_required', ['   ']],
    ['256 characters long', 'idempotency_key_invalid', ['k'.repeat(256)]],
    ['not ASCII', 'idempotency_key_invalid', ['caf\xe9']],
    ['with a tab inside', 'idempotency_key_invalid', ['a\tb']],
    ['sent twice', 'idempotency_key_invalid', ['a', 'b']],
    ['sent twice with one value', 'idempotency_key_invalid', ['a', 'a']],
    ['sent twice without a value', 'idempotency_key_invalid', ['', '']],
  ] as const)('that is %s is refused as %s', async (_, code, values) => {
    const before = await shop.count('payments');
    const headers = [
      ['Authorization', `Bearer ${shop.key}`] as const,
      ['Content-Type', 'application/json'] as const,
      ...values.map((value) => ['Idempotency-Key', value] as const),
    ];
    const body = JSON.stringify(idealPayment());
    expectRefusal(await exchange(service.url, { headers, body }), code);
    expect(await shop.count('payments')).toBe(before);
  });

  test('has up to 255 printable characters, and belongs to one account and one environment', async () => {
    for (const value of ['k'.repeat(255), '!"#$%&\'()*+,-./09:;<=>?@AZ[\\]^_`az{|} ~']) {
      const first = await create(value);
      expect(first.status).toBe(201);
      expect((await create(value)).text).toBe(first.text);
    }
    const first = await create('k');
    const foreign = await create('k', idealPayment({ amount: 5 }), await service.account());
    expect(foreign.status).toBe(201);
    expect(foreign.body.id).not.toBe(first.body.id);
    const live = await service.withKey(shop, true);
    // Without a live connector, only a shared key could answer with the sandbox payment.
    expectRefusal(await create('k', idealPayment(), live), 'method_requirements_not_met');
    const second = await service.withKey(shop, false);
    expect((await create('k', idealPayment(), second)).text).toBe(first.text);
  });

  test('is free again after 24 hours, also while its expired record is still stored', async () => {
    const first = await create('daily');
    const age = async (ms: number) => {
      const created_at = new Date(Date.now() - ms);
      const expires_at = new Date(created_at.getTime() + DAY_MS);
      // The database may have deleted the record by now; then nothing is left to change.
      const filter = { account_id: shop.account_id, key: 'daily' };
      await records().updateOne(filter, { $set: { created_at, expires_at } });
    };
    await age(DAY_MS - HOUR_MS);
    expect((await create('daily')).text).toBe(first.text);
    await age(DAY_MS + 1);
    const next = await create('daily', idealPayment({ reference: randomUUID() }));
    expect([next.status, readReplayed(next)]).toEqual([201, null]);
    expect(next.body.id).not.toBe(first.body.id);
    expectRefusal(await create('daily'), 'idempotency_key_reused');
  });

  test('expires 24 hours after its resource is written, however old the first call is', async () => {
    const { idempotency } = service.stores;
    const [now, resource_id, { account_id }] = [Date.now(), randomUUID(), shop];
    const key = { account_id, livemode: false, operation: 'createPayment', key: 'outage' };
    const facts = { fingerprint: 'f', resource_id, request_id: 'r' };
    const first = new Date(now - 2 * DAY_MS);
    await idempotency.reserveKey({ ...key, ...facts, request: { recipient: Object() } }, first);
    await idempotency.markWritten(resource_id);
    const find = (ms: number) => idempotency.find(key, new Date(now + ms), 'hash');
    expect(await find(DAY_MS - 1)).toMatchObject({ resource_id });
    expect(await find(DAY_MS + 5 * 60_000)).toBeNull();
  });
});

describe('an idempotency key of a refund', () => {
  const shop = useFreshFixture(() => service.account());
  let payment_id: string;
  beforeEach(async () => {
    payment_id = (await shop.settledPayment()).id;
  });

  const refund = (idempotencyKey: string, changes: object = {}) =>
    shop.post('/v1/refunds', { payment_id, amount: 100, ...changes }, { idempotencyKey });

  test('stays free for all simultaneous callers when only the reservation of funds refuses', async () => {
    // The balance is not read before the key is reserved.
    await fundAccount(service, shop, { amount: -1_000 });
    const answers = await Promise.all(Array.from({ length: CROWD }, () => refund('again')));
    for (const answer of answers) expectRefusal(answer, 'insufficient_balance');
    const record = await findRecord(shop, 'createRefund', 'again');
    expect([record, await shop.count('refunds')]).toEqual([null, 0]);
    const less = await refund('again', { amount: 50 });
    expect([less.status, readReplayed(less)]).toEqual([201, null]);
    expect((await refund('again', { amount: 50 })).text).toBe(less.text);
    await fundAccount(service, shop, { amount: 1_000 });
    expectRefusal(await refund('again'), 'idempotency_key_reused');
    expect(await shop.count('refunds')).toBe(1);
  });

  /** Makes a call as it is after its checks; the test decides how its resource is created. */
  const callOnce = async (
    idempotencyKey: string,
    { canonical = '{}', accepted_at = new Date().toISOString() },
    create: (resource_id: string) => Promise<CreatedResource>,
  ) => {
    const { stores, keys, connector } = service;
    const deps = { stores, keys, encrypter: createEncrypter(keys.seal), now: () => new Date() };
    const caller = { account_id: shop.account_id, livemode: false };
    const requestId = 'some-request';
    const request = { caller, idempotencyKey, canonical, requestId, fields: null };
    const money = { amount: 100, currency: 'EUR', method: 'ideal' };
    const routing = { ...caller, ...money, payment_id, connector, accepted_at, due_seconds: 60 };
    return await createOnce(deps, request, {
      operation: 'createRefund',
      accept: () => ({ refund: { reason: null }, routing }),
      open: ({ record }) => create(record.resource_id),
    });
  };

  test('refuses joined callers of a refused first call without touching the next call', async () => {
    const reason = new Refusal('insufficient_balance', 'Too little.');
    const waiting: ((error: Refusal) => void)[] = [];
    const resources = new Set<string>();
    const wait = (id: string) => {
      resources.add(id);
      return new Promise<CreatedResource>((_, reject) => waiting.push(reject));
    };
    const outcomes = Promise.allSettled([
      callOnce('joined', {}, wait),
      callOnce('joined', {}, wait),
    ]);
    await eventually('both at the same record', async () => waiting.length === 2);
    expect(resources.size).toBe(1);
    // The workflow frees the key, then answers; between the two another call reserves it.
    for (const id of resources) await service.stores.idempotency.release(id);
    const other = { canonical: '{"amount":1}' };
    const next = await callOnce('joined', other, async () => ({ answer: { amount: 1 } }));
    for (const reject of waiting) reject(reason);
    expect(await outcomes).toEqual(Array(2).fill({ status: 'rejected', reason }));
    expect(next).toMatchObject({ body: '{"amount":1}', isReplayed: false });
    const record = await findRecord(shop, 'createRefund', 'joined');
    expect(resources).not.toContain(record?.resource_id);
    expect(record).toMatchObject({ status: 201, body: '{"amount":1}', request: null });
  });

  test('judges a repeat by the time of the first call, also after the refund window', async () => {
    const { canonical } = parseJson(JSON.stringify({ payment_id, amount: 100 }));
    const ago = (days: number, minutes: number) =>
      new Date(Date.now() - days * DAY_MS - minutes * 60_000).toISOString();
    const outage = new Refusal('temporarily_unavailable', 'Gone.');
    const first = { canonical, accepted_at: ago(0, 2) };
    await expect(callOnce('late', first, () => Promise.reject(outage))).rejects.toBe(outage);
    const payments = service.collection<{ _id: string }>('payments');
    await payments.updateOne({ _id: payment_id }, { $set: { settled_at: ago(365, 1) } });
    expectRefusal(await refund('fresh'), 'refund_window_expired');
    const repeat = await refund('late');
    expect([repeat.status, repeat.headers.get('Idempotent-Replayed')]).toEqual([201, 'true']);
  });
});
