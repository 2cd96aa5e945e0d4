import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { Contention } from '../../src/base/mongo';
import { createConnectorKey } from '../../src/callbacks/keys';
import { LOGGED, WHOLE } from '../../src/domain/logged';
import { createPayment } from '../../src/domain/wire/payments';
import { createEncrypter } from '../../src/encryption/encrypter';
import { createRequestRecorder } from '../../src/service/events/requests';
import { makeKey } from '../../src/store/keys';
import type { RequestDocument } from '../../src/store/requests';
import { signPayload } from '../../src/webhooks/attempt';
import { operatorsAudit } from '../support/audit';
import { eventually } from '../support/eventually';
import { buildPayment } from '../support/factories';
import { gate } from '../support/gate';
import { readPayloads } from '../support/histories';
import { type Answer, type Client, call, createClient, idealPayment } from '../support/http';
import { type Account, type AccountOptions, useAccount, useService } from '../support/service';
import { CREATES, type Creator } from './create-setting';
import { type Exchange, exchange } from './exchange';
import { walkPages } from './pages';
import { bankRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';
import { inOneWindow } from './window';

const service = useService();

const KIB_64 = 64 * 1_024;
const shop = useAccount(service);

const good = JSON.stringify(idealPayment());
const latin1 = (text: string) => Buffer.from(text, 'latin1');
const countStored = () => Promise.all([shop.count('payments'), shop.count('idempotency_records')]);

/** Posts bytes as they are, under a key of their own, by default as JSON, and repeats them after a 503. */
function post(body: Exchange['body'], more: { type?: string | null } & Partial<Exchange> = {}) {
  const { type = 'application/json', headers = [], ...rest } = more;
  const request: Exchange = {
    headers: [
      ['Authorization', `Bearer ${shop.key}`],
      ['Idempotency-Key', randomUUID()],
      ...(type === null ? [] : [['Content-Type', type] as const]),
      ...headers,
    ],
    ...(body === undefined ? {} : { body }),
    ...rest,
  };
  return eventually('an answer in time', async () => {
    const answer = await exchange(service.url, request);
    return ![409, 503].includes(answer.status) && answer;
  });
}

describe('the text of a body', () => {
  const JSON_TYPE = 'application/json';
  test.each([
    ['cut off', '{', JSON_TYPE, 'invalid_json'],
    ['missing', undefined, JSON_TYPE, 'invalid_json'],
    ['missing, like its type', undefined, null, 'invalid_json'],
    ['empty', '', JSON_TYPE, 'invalid_json'],
    ['one key with two values', good.replace('{', '{"amount":1,'), JSON_TYPE, 'invalid_json'],
    ['hundreds of fields', `{"x":[${'1,'.repeat(500)}1]}`, JSON_TYPE, 'invalid_json'],
    ['thousands of values', `{"x":[${'1,'.repeat(5_000)}1]}`, JSON_TYPE, 'invalid_json'],
    ['not UTF-8', latin1('{"reference":"caf\xe9"}'), JSON_TYPE, 'invalid_json'],
    ['a surrogate', latin1('{"reference":"\xed\xa0\x80"}'), JSON_TYPE, 'invalid_json'],
    ['a list', `[${good}]`, JSON_TYPE, 'invalid_request'],
    ['null', 'null', JSON_TYPE, 'invalid_request'],
    ...[null, 'text/plain', 'application/vnd.api+json', 'application/json, text/plain'].map(
      (type) => [`of the type ${type}`, good, type, 'unsupported_media_type'] as const,
    ),
    ['of another charset', good, `${JSON_TYPE}; charset=latin1`, 'unsupported_media_type'],
    ['compressed', good, JSON_TYPE, 'unsupported_media_type'],
  ] as const)('is refused when it is %s', async (what, body, type, code) => {
    const before = await countStored();
    const headers = what === 'compressed' ? [['Content-Encoding', 'gzip'] as const] : [];
    const answer = await post(body, { type, headers });
    expectRefusal(answer, code);
    if (!body) expect(answer.body.error.message).toContain('empty');
    expect(await countStored()).toEqual(before);
  });

  test.each([
    ['a byte order mark', `\ufeff${good}`, JSON_TYPE],
    ['one value twice', good.replace('{', '{"amount":1050,'), JSON_TYPE],
    ['a charset', good, 'application/json; charset=utf-8'],
    ['a type in capitals', good, 'Application/JSON;charset="UTF-8"'],
  ])('may have %s', async (_, body, type) => {
    const answer = await post(body, { type });
    expect([answer.status, answer.body.amount]).toEqual([201, 1_050]);
  });

  test.each([false, true])('may have 64 KiB, in bytes; in chunks: %s', async (chunked) => {
    const pad = (bytes: number) => `${good.slice(0, -1)}${' '.repeat(bytes - good.length)}}`;
    expect((await post(pad(KIB_64), { chunked })).status).toBe(201);
    const before = await countStored();
    const long = JSON.stringify(idealPayment({ metadata: 'é'.repeat(KIB_64 / 2) }));
    expect(long.length).toBeLessThan(KIB_64);
    for (const body of [pad(KIB_64 + 1), pad(3_000_000), long]) {
      expectRefusal(await post(body, { chunked }), 'body_too_large');
    }
    expect(await countStored()).toEqual(before);
  });

  test('of a cancellation is missing, empty or {}, and nothing else', async () => {
    const { id } = await buildPayment(shop);
    const path = `/v1/payments/${id}/cancel`;
    expectRefusal(await post('{"reason":"x"}', { path }), 'invalid_request', ['reason']);
    expectRefusal(await post('{', { path }), 'invalid_json');
    expectRefusal(await post('{}', { path, type: 'text/plain' }), 'unsupported_media_type');
    expect((await service.stores.payments.get(id))?.status).toBe('awaiting_customer');
    expect((await post(undefined, { path, type: null })).body.status).toBe('cancelled');
    expect((await post('', { path, type: null })).status).toBe(200);
    expect((await post('{}', { path })).status).toBe(200);
  });
});

describe.each(CREATES)('the amount of $name', ({ name, path, open }) => {
  test('is refused when it is no integer or out of bounds, and never rounded', async () => {
    const creator = await open(service);
    for (const amount of [
      ...['10.5', '10.0', '1e3', '1e400', '0.1e2', '-0', '0', '-1', '100000000000'],
      ...['9007199254740993', '12345678901234567890', '"10"', '""', 'true', '[1050]', '{}'],
      // A refund without an amount takes all that remains.
      ...(name === 'refunds' ? [] : ['null']),
    ]) {
      const body = JSON.stringify({ ...creator.body, amount: '@@' }).replace('"@@"', amount);
      expectRefusal(await creator.postRaw(path, body), 'invalid_amount', ['amount']);
    }
    expect(await creator.count(name)).toBe(0);
  });
});

// A refund has no metadata.
describe.each(CREATES.filter(({ name }) => name !== 'refunds'))('the metadata of $name', (row) => {
  const { name, path, open } = row;
  const bodyWith = ({ body }: Creator, metadata: string) =>
    JSON.stringify(body).replace(/\}$/, `,"metadata":${metadata}}`);

  // Texts of any form: test/base/unit/json.test.ts
  test('comes back byte for byte, and does not reach Temporal', async () => {
    const creator = await open(service);
    const metadata =
      '{ "n":12345678901234567890,"c":1e400,"b":"\\u00e9\\/\\ud800 é 😀","__proto__":{"x":1},' +
      '"toJSON":1,"$where":"1","a.b":1, "secret" : [ "marker-7f3a" ,\r\n\t[[[null]]] ] }';
    const wanted = `"metadata":${metadata},"`;
    const create = () =>
      creator.postRaw(path, bodyWith(creator, metadata), { idempotencyKey: 'words' });
    const created = await create();
    const { id, method } = created.body;
    const again = [await creator.get(`${path}/${id}`), await creator.get(`${path}?limit=1`)];
    for (const { text } of [created, ...again]) expect(text).toContain(wanted);
    await creator.advance?.(id);
    expect((await creator.get(`${path}/${id}`)).text).toContain(wanted);
    expect((await create()).text).toBe(created.text);
    const { text } = await readPayloads(service.temporal, `${name.slice(0, -1)}:${id}`);
    expect(text).toContain(method);
    expect(text).not.toMatch(/marker-7f3a|toJSON/);
  });

  test('is an empty object by default, and has at most 50 keys and 8 KiB', async () => {
    const creator = await open(service);
    const create = (body: string) => creator.postRaw(path, body);
    const keys = (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":${i}`)}}`;
    const text = (value: string, bytes: number) => `{"a":"${value.repeat(bytes - 8)}"}`;
    for (const metadata of [keys(50), text('x', 8 * 1_024)]) {
      expect((await create(bodyWith(creator, metadata))).status).toBe(201);
    }
    const empty = ['null', '[]', '[ ]'].map((each) => bodyWith(creator, each));
    for (const body of [JSON.stringify(creator.body), ...empty]) {
      expect((await create(body)).text).toContain('"metadata":{},');
    }
    for (const wrong of ['[1]', '"{}"', keys(51), text('x', 8 * 1_024 + 1), text('é', 4_104)]) {
      expectRefusal(await create(bodyWith(creator, wrong)), 'invalid_request', ['metadata']);
    }
  });
});

describe('a field of a payment', () => {
  const create = (changes: object) => shop.post('/v1/payments', { ...idealPayment(), ...changes });

  let before: number[];
  beforeAll(async () => {
    before = await countStored();
  });
  afterAll(async () => expect(await countStored()).toEqual(before));

  test.each([
    ['currency', ['eur', 'ABC', 'XXX', '', ' EUR', '978']],
    ['country', ['nl', 'UK', '', 'N\u0000', '528']],
    // A lone surrogate could not be returned unchanged.
    ['reference', ['a\u0000b', '\ud800', '\udc00\ud800', 'a\udfff']],
    ['customer.email', ['bad', '', 'a b@c.nl', 'a@b', 'a@b.nl\n', `${'a'.repeat(250)}@b.nl`]],
    ['customer.first_name', ['\u0000']],
  ])('is refused by its name: %s %j', async (field, values) => {
    const [name = '', nested] = field.split('.');
    for (const value of values) {
      const wrong = nested === undefined ? value : { [nested]: value };
      expectRefusal(await create({ [name]: wrong }), 'invalid_request', [field]);
    }
  });

  test.each([
    ...['http://shop.example/', 'https://user:pass@shop.example/', 'https://@shop.example/'],
    ...['/thanks', '//shop.example/', 'javascript:alert(1)', 'https://', 'https:/shop.example', ''],
    ...['https://shop.example:99999/', 'https://shop.example/a b', ' https://shop.example/', null],
    ...['https://shop.example/\nLocation: x', 'https://shop.example/\u007f'],
    ...['https://shop.example\\@evil.example/', 'https://shop.example;sandbox/'],
    `https://shop.example/${'x'.repeat(2_049 - 21)}`,
  ])('is refused when it is the URL %j', async (url) => {
    const answer = await create({ success_url: url, error_url: url });
    expectRefusal(answer, 'invalid_request', ['success_url', 'error_url']);
  });

  test('is named with every other one that is wrong, missing or unknown', async () => {
    const body =
      '{"amount":1.5,"currency":1e3,"success_url":3,"country":4,"reference":5,"customer":1.5,' +
      '"metadata":7.0,"__proto__":{"isAdmin":true}}';
    const answer = await shop.postRaw('/v1/payments', body);
    expectRefusal(answer, 'invalid_request');
    expect(answer.body.error.message).toContain('10 fields');
    const details: Record<string, string>[] = answer.body.error.details;
    expect(Object.fromEntries(details.map(({ field, code }) => [field, code]))).toEqual({
      ...{ method: 'required', error_url: 'required', amount: 'invalid_amount' },
      ...{ currency: 'invalid', success_url: 'invalid', country: 'invalid', reference: 'invalid' },
      ...{ customer: 'invalid', metadata: 'invalid', ['__proto__']: 'unknown_field' },
    });
    expect(Object.prototype).not.toHaveProperty('isAdmin');
  });
});

test('a payment accepts null for an optional field, any text and long URLs', async () => {
  const [reference, url] = ['\u0001\u202e 日本語 😀', 'https://shop.example:8443/€?a=b&c=%20#top'];
  const [success_url, error_url] = [url.padEnd(2_048, 'x'), 'https://xn--bcher-kva.example'];
  for (const customer of [null, { email: null }]) {
    const optional = { country: null, metadata: null, reference, customer };
    const body = { ...idealPayment(optional), success_url, error_url };
    const answer = await shop.post('/v1/payments', body);
    expect(answer.status).toBe(201);
    const shown = { country: null, customer: { email: null }, metadata: {}, reference };
    expect(answer.body).toMatchObject(shown);
  }
});

/** Calls a second, counted over windows of ten seconds. */
const LIMITS = {
  RATE_LIMIT_PER_SECOND: 2,
  ACCOUNT_LIMIT_PER_SECOND: 3,
  SANDBOX_CREATE_LIMIT_PER_SECOND: 1,
  CREATE_LIMIT_PER_SECOND: 1,
};
/** Calls of one key in a window. */
const BURST = 20;
/** The API with low limits, which other files would exceed. */
let limitedUrl = '';
const testLimits = (title: string, work: () => Promise<void>) => {
  const workAt = async (url: string) => {
    limitedUrl = url;
    await work();
  };
  const serve = async () => void (await service.withApp({ config: LIMITS }, workAt));
  test(title, inOneWindow(serve));
};

afterEach(() => jest.restoreAllMocks());

const limit = (account: Account) => ({ ...account, ...createClient(limitedUrl, account.key) });
const openShop = async (options?: AccountOptions) => limit(await service.account(options));
const addKey = async (shop: Account, livemode: boolean) =>
  limit(await service.withKey(shop, livemode));

const get = (shop: Client) => shop.get('/v1/payment-methods/available');
const RECIPIENTS = '/v1/payout-recipients';
const create = (shop: Client, idempotencyKey: string = randomUUID()) =>
  shop.post(RECIPIENTS, bankRecipient(), { idempotencyKey });
const readNumber = ({ headers }: { headers: Headers }, name: string) =>
  Number(headers.get(name) ?? Number.NaN);
const readLimit = (answer: { headers: Headers }) =>
  ['Limit', 'Remaining', 'Reset'].map((name) => readNumber(answer, `RateLimit-${name}`));
const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make);
const countStatuses = async (calls: Promise<Answer>[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(calls)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

testLimits(
  'a call over the limit of its key is refused until the reset that it names',
  async () => {
    const shop = await openShop();
    const first = await get(shop);
    expect(readLimit(first)).toEqual([BURST, BURST - 1, expect.any(Number)]);
    const reset = readNumber(first, 'RateLimit-Reset');
    expect([reset >= 1, reset <= 10]).toEqual([true, true]);
    // Calls that fail count too.
    const calls = times(BURST * 2, () => shop.get('/v1/payments/some-id'));
    expect(await countStatuses(calls)).toEqual({ 404: BURST - 1, 429: BURST + 1 });
    const refused = await create(shop, 'limited');
    const began = Date.now();
    expectRefusal(refused, 'rate_limited');
    expect(refused.body.error.message).toContain('2 a second');
    const after = readNumber(refused, 'Retry-After');
    expect([after >= 1, after <= 10]).toEqual([true, true]);
    expect(readLimit(refused)).toEqual([BURST, 0, after]);
    expect(await shop.count('recipients')).toBe(0);
    await eventually('the end of the window', async () => Date.now() - began >= after * 1_000);
    const repeat = await create(shop, 'limited');
    expect([repeat.status, repeat.headers.get('Idempotent-Replayed')]).toEqual([201, null]);
  },
);

testLimits('all keys of an account in one environment share a second limit', async () => {
  const shop = await openShop();
  const second = await addKey(shop, false);
  expect(await countStatuses(times(20, () => get(shop)))).toEqual({ 200: 20 });
  expect(await countStatuses(times(15, () => get(second)))).toEqual({ 200: 10, 429: 5 });
  const refused = await get(second);
  expectRefusal(refused, 'rate_limited');
  expect(refused.body.error.message).toContain('account: at most 3 a second');
  expect(readLimit(refused).slice(0, 2)).toEqual([30, 0]);
  for (const other of [await addKey(shop, true), await openShop()]) {
    expect((await get(other)).status).toBe(200);
  }
});

testLimits('a list counts one more call for each ten rows of its limit', async () => {
  const shop = await openShop();
  const list = (query: string) => shop.get(`/v1/payments${query}`);
  const readLeft = async (query: string) => readNumber(await list(query), 'RateLimit-Remaining');
  const left = [await readLeft(''), await readLeft('?limit=9'), await readLeft('?limit=100')];
  expect(left).toEqual([17, 16, 5]);
  expectRefusal(await list('?limit=100'), 'rate_limited');
  const invalid = await (await openShop()).get('/v1/payments?limit=101');
  expect([invalid.status, readNumber(invalid, 'RateLimit-Remaining')]).toEqual([400, 19]);
});

// How many of each kind: test/service/unit/shares.test.ts
test.each<[kind: string, alone: number, held: [string, string], ask: (shop: Account) => string]>([
  ['reads', 15, ['payments', 'list'], () => 'GET /v1/payments?limit=1'],
  ['changes', 2, ['recipients', 'get'], (shop) => `DELETE ${RECIPIENTS}/${shop.account_id}`],
  ['creates', 8, ['recipients', 'insert'], () => `POST ${RECIPIENTS}`],
])(
  'an account with slow %s has %i at once, and other accounts do not wait for it',
  async (_, alone, [name, method], ask) => {
    const [shop, other] = [await service.account(), await service.account()];
    const slow = gate();
    let begun = 0;
    const store = Object(service.stores)[name];
    const call = store[method];
    jest.spyOn(store, method).mockImplementation(async (...args) => {
      if (JSON.stringify(args).includes(shop.account_id)) {
        begun += 1;
        await slow.opened;
      }
      return await call(...args);
    });
    // Without the limits of this file.
    await service.withApp({ config: { CREATES_AT_ONCE: 10 } }, async (url) => {
      const send = (by: Account) => {
        const [verb = '', path = ''] = ask(by).split(' ');
        const client = createClient(url, by.key);
        return verb === 'POST' ? create(client) : client.send(verb, path);
      };
      const answers = times(alone + 3, () => send(shop));
      await eventually('the calls to wait', async () => begun === alone);
      const { status } = await send(other);
      expect([200, 201, 404]).toContain(status);
      expect(begun).toBe(alone);
      slow.release();
      const statuses = (await Promise.all(answers)).map((each) => each.status);
      expect(statuses).toEqual(statuses.map(() => status));
    });
  },
);

test('a change that has met the locks of others for too long is to be repeated', async () => {
  const conflict = new Contention('The transaction had write conflicts.', 1_000);
  jest.spyOn(service.stores.recipients, 'get').mockRejectedValueOnce(conflict);
  await service.withApp({}, async (url) => {
    const refused = await createClient(url, shop.key).delete(`${RECIPIENTS}/any`);
    expectRefusal(refused, 'temporarily_unavailable');
    expect(readNumber(refused, 'Retry-After')).toBe(1);
  });
});

testLimits('creates and simulations share a lower limit, apart in sandbox and live', async () => {
  const shop = await openShop();
  const path = `/v1/sandbox/payments/${randomUUID()}/simulate`;
  expect((await shop.post(path, { event: 'settled' })).status).toBe(404);
  expect(await countStatuses(times(12, () => create(shop)))).toEqual({ 201: 9, 429: 3 });
  const refused = await create(shop);
  expectRefusal(refused, 'rate_limited');
  expect(refused.body.error.message).toContain('created by one account: at most 1 a second');
  expect(readNumber(refused, 'RateLimit-Limit')).toBe(10);
  expectRefusal(await shop.post(path, { event: 'settled' }), 'rate_limited');
  expect(await shop.count('idempotency_records')).toBe(9);
  expect((await get(shop)).status).toBe(200);
  for (const other of [await addKey(shop, true), await openShop()]) {
    expect((await create(other)).status).toBe(201);
  }
});

testLimits('a key without the scope has the same limit, and a wrong key has none', async () => {
  const shop = await openShop({ scopes: ['payments:read'] });
  expect(await countStatuses(times(25, () => create(shop)))).toEqual({ 403: 20, 429: 5 });
  expect((await create(await addKey(shop, false))).status).toBe(201);
  const [first] = await service.stores.keys.forAccount(shop.account_id);
  expect(first?.last_used_at).toBeNull();
  // Nor have paths without a key, and wrong keys, that of a key.
  const wrong = createClient(limitedUrl, makeKey(false));
  for (let i = 0; i < BURST + 5; i += 1) {
    expect((await fetch(`${limitedUrl}/healthz`)).status).toBe(200);
    expectRefusal(await get(wrong), 'api_key_invalid');
  }
});

testLimits('callbacks of a connector have a limit, and each answer says what is left', async () => {
  const { stores, mongo, keys } = service;
  const connector = `limited-${randomUUID().slice(0, 8)}`;
  const encrypter = createEncrypter(keys.seal);
  const audit = operatorsAudit(stores);
  const deps = { stores, mongo, now: () => new Date(), audit, encrypter };
  const { secret } = await createConnectorKey(deps, connector);
  const post = () => {
    const signature = signPayload(secret, '{}', Math.floor(Date.now() / 1_000));
    const headers = { 'Connector-Signature': signature };
    const path = `${limitedUrl}/connectors/${connector}/callbacks`;
    return fetch(path, { method: 'POST', headers, body: '{}' });
  };
  for (let left = BURST - 1; left >= 0; left -= 1) {
    const answer = await post();
    expect([answer.status, readNumber(answer, 'RateLimit-Remaining')]).toEqual([400, left]);
  }
  const refused = await post();
  expect([refused.status, readNumber(refused, 'RateLimit-Remaining')]).toEqual([429, 0]);
});

const DAY_MS = 86_400_000;

interface Row {
  request_id: string;
  path: string;
  code: string | null;
  request_body: unknown;
}

/** Reads the list once it has so many rows: requests are recorded in the background. */
const readRows = (account: Account, count: number) =>
  eventually(`${count} requests`, async () => {
    const { data } = (await account.get('/v1/requests')).body;
    return data.length === count && (data as Row[]);
  });

test('a write is listed with redacted bodies, and a read only when it is refused', async () => {
  const shop = await service.account();
  const body = bankRecipient({ reference: 'supplier-7 of Hopper' });
  const [path, idempotencyKey] = ['/v1/payout-recipients', `supplier-${randomUUID()}`];
  const created = await shop.post(path, body, { idempotencyKey });
  expect((await shop.get('/v1/payments?limit=1')).status).toBe(200);
  const missing = await shop.get('/v1/payments/order-7?x=y');
  const [second, first] = await readRows(shop, 2);
  const redacted = Object.keys(body).map((field) => [field, '[redacted]']);
  expect(first).toEqual({
    request_id: created.headers.get('Request-Id'),
    object: 'request',
    ...{ method: 'POST', path, status: 201, code: null },
    idempotency_key: idempotencyKey,
    key_id: expect.stringMatching(/^key_/),
    duration_ms: expect.any(Number),
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    request_body: { ...Object.fromEntries(redacted), type: 'bank_account' },
    response_body: { ...created.body, last4: '[redacted]' },
  });
  expect(second).toMatchObject({
    ...{ method: 'GET', path: '/v1/payments/order-7', status: 404, code: 'payment_not_found' },
    ...{ request_id: missing.body.error.request_id, request_body: null, idempotency_key: null },
  });
});

test('a request with a refused key of the account is listed, one with an unknown key is not', async () => {
  const shop = await service.account();
  const reader = await service.withKey(shop, false, ['payments:read']);
  const createPayment = (key: string) =>
    call(service.url, 'POST', '/v1/payments', {
      ...{ key, body: idealPayment(), once: true },
      idempotencyKey: randomUUID(),
    });
  expectRefusal(await createPayment(reader.key), 'api_key_scope_insufficient');
  expectRefusal(await reader.get('/v1/requests'), 'api_key_scope_insufficient');
  const { key } = await service.withKey(shop, false);
  const revoked = (await service.stores.keys.forAccount(shop.account_id)).at(-1)?._id ?? '';
  await service.stores.keys.revoke(revoked, new Date().toISOString());
  expectRefusal(await createPayment(key), 'api_key_revoked');
  await createPayment(`sk_sandbox_${'x'.repeat(43)}`);
  const rows = await readRows(shop, 3);
  expect(rows.map(({ code }) => code)).toEqual([
    'api_key_revoked',
    'api_key_scope_insufficient',
    'api_key_scope_insufficient',
  ]);
  for (const row of rows) expect(row.request_body).toBeNull();
  expect(JSON.stringify(rows)).not.toContain('127.0.0.1');
});

test('the list has the last seven days of one account and environment, page by page', async () => {
  const shop = await service.account();
  const [live, other] = [await service.withKey(shop, true), await service.account()];
  for (let n = 0; n < 7; n += 1) await shop.get(`/v1/payments/none-${n}`);
  await live.get('/v1/payments/none-7');
  const rows = await readRows(shop, 7);
  expect((await readRows(live, 1))[0]?.path).toBe('/v1/payments/none-7');
  expect((await other.get('/v1/requests')).body.data).toEqual([]);
  const readPage = (query: Record<string, string>) =>
    shop.get(`/v1/requests?${new URLSearchParams(query)}`);
  const pages = await walkPages(readPage, { limit: '3' });
  expect(pages.flat()).toEqual(rows.map(({ request_id }) => request_id));
  const requests = service.collection<RequestDocument>('requests');
  const owner = { account_id: shop.account_id, livemode: false };
  const [oldest] = await requests.find(owner).sort({ position: 1 }).limit(1).toArray();
  const created = new Date(oldest?.created_at ?? '');
  expect(oldest?.expires_at).toEqual(new Date(created.getTime() + 7 * DAY_MS));
  const old = new Date(created.getTime() - 7 * DAY_MS - 1_000).toISOString();
  const position = `${old.slice(0, -1)}000000Z`;
  await requests.updateOne({ _id: oldest?._id ?? '' }, { $set: { position } });
  // One row is too old by now.
  const shown = await readRows(shop, 6);
  expect(shown.map(({ request_id }) => request_id)).not.toContain(oldest?._id);
  expect(await requests.indexes()).toContainEqual(
    expect.objectContaining({ expireAfterSeconds: 0 }),
  );
});

// What is stored of a body: test/service/unit/redact.test.ts
describe('the recorder of requests', () => {
  const buildCall = (changes: object = {}) => ({
    ...{ request_id: randomUUID(), account_id: 'account_x', livemode: false, key_id: 'key_x' },
    ...{ method: 'POST', path: '/v1/payments', status: 201, code: null, duration_ms: 1 },
    at: new Date('2026-03-01T12:00:00.000Z'),
    readExchange: () => ({
      endpoint: createPayment,
      ...{ params: {}, query: {}, request: undefined, status: 201, response: undefined },
      idempotencyKey: undefined,
    }),
    ...changes,
  });
  const stored: RequestDocument[] = [];
  let isAway = false;
  const insertInMemory = async (documents: readonly RequestDocument[]) => {
    if (isAway) throw new Error('away');
    stored.push(...documents);
  };
  const open = (insertAll = insertInMemory) => {
    const registry = new Registry();
    const log = { warn: () => undefined };
    const recorder = createRequestRecorder({ stores: { requests: { insertAll } }, log, registry });
    const readDropped = async () =>
      Number(/requests_dropped_total (\d+)/.exec(await registry.metrics())?.[1]);
    const add = (changes?: object) => recorder.record(buildCall(changes));
    /** Records calls that differ by some fields, and ends; counts those that are stored. */
    const record = async (count: number, changes: object = {}) => {
      stored.length = 0;
      for (let left = count; left > 0; left -= 1_000) {
        for (let n = 0; n < Math.min(left, 1_000); n += 1) add(changes);
        await new Promise(setImmediate);
        await recorder.close();
      }
      return stored.length;
    };
    return { close: recorder.close, add, record, readDropped };
  };
  beforeEach(() => {
    stored.length = 0;
    isAway = false;
  });

  test('writes at its end in one batch, and once when the answer of the database is lost', async () => {
    const account_id = `account_${randomUUID()}`;
    const batches: number[] = [];
    const writes: Promise<void>[] = [];
    const { insertAll } = service.stores.requests;
    const recorder = open((documents) => {
      batches.push(documents.length);
      const writing = insertAll(documents).then(() => insertAll(documents));
      writes.push(writing);
      return writing;
    });
    for (let n = 0; n < 20; n += 1) recorder.add({ account_id });
    await recorder.close();
    expect(batches).toEqual([20]);
    // The recorder waits 3 s at its end, and a busy machine may write for longer.
    await Promise.all(writes);
    expect(await service.collection('requests').countDocuments({ account_id })).toBe(20);
  });

  test('stores a bounded number while the database is away, counts what it drops, and gives up at its end', async () => {
    isAway = true;
    const recorder = open();
    for (let n = 0; n < 2_100; n += 1) recorder.add();
    expect(await recorder.readDropped()).toBe(100);
    isAway = false;
    await recorder.close();
    expect(stored).toHaveLength(2_000);
    isAway = true;
    const hopeless = open();
    expect(await hopeless.record(1)).toBe(0);
    expect(await hopeless.readDropped()).toBe(1);
  });

  test('stores few of a flood of equal refusals, and all others but an unreadable one', async () => {
    const recorder = open();
    const readExchange = () => {
      throw new Error('unreadable');
    };
    const flood = { status: 429, code: 'rate_limited' };
    for (let n = 0; n < 500; n += 1) recorder.add(flood);
    for (const changes of [{ readExchange }, {}]) recorder.add(changes);
    await recorder.close();
    expect(stored).toHaveLength(101);
    expect(await recorder.readDropped()).toBe(401);
  });

  test('stores a bounded number and size of an account in a day, and all of the next day', async () => {
    const { record } = open();
    expect(await record(50_500)).toBe(50_000);
    expect(await record(1)).toBe(0);
    expect(await record(1, { livemode: true })).toBe(1);
    expect(await record(1, { at: new Date('2026-03-02T00:00:00.000Z') })).toBe(1);
    const schema = z.string().register(LOGGED, WHOLE);
    const response = 'x'.repeat(1_024 * 1_024);
    const exchange = { ...buildCall().readExchange(), endpoint: { success: { schema } }, response };
    const long = { account_id: 'account_y', readExchange: () => exchange };
    let count = 0;
    for (let n = 0; n < 66; n += 1) count += await record(1, long);
    expect(count).toBe(64);
  });
});
