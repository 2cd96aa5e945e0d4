import { randomUUID } from 'node:crypto';
import { buildPayment } from '../support/factories';
import { readPayloads } from '../support/histories';
import { eventually, idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';
import { CREATES, type Creator } from './create-setting';
import { type Exchange, exchange } from './exchange';
import { expectRefusal } from './refusal';

const KIB_64 = 64 * 1_024;

const service = useService();
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
    for (const body of [JSON.stringify(creator.body), bodyWith(creator, 'null')]) {
      expect((await create(body)).text).toContain('"metadata":{},');
    }
    for (const wrong of ['[]', '"{}"', keys(51), text('x', 8 * 1_024 + 1), text('é', 4_104)]) {
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
