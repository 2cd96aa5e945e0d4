import { gzipSync } from 'node:zlib';
import { eventually, idealPayment, waitForBank } from '../support/http';
import { useAccount, useService } from '../support/service';
import { type Exchange, exchange } from './exchange';
import { expectRefusal } from './refusal';

const KIB_64 = 64 * 1_024;

const service = useService();
const shop = useAccount(service);
let sent = 0;

const good = JSON.stringify(idealPayment());
const latin1 = (text: string) => Buffer.from(text, 'latin1');

/**
 * A POST with a key of its own, made again under it while a busy machine answers too late; the type
 * is JSON unless told.
 */
function post(body: Exchange['body'], more: { type?: string | null } & Partial<Exchange> = {}) {
  const { type = 'application/json', headers = [], ...rest } = more;
  sent += 1;
  const request: Exchange = {
    headers: [
      ['Authorization', `Bearer ${shop.key}`],
      ['Idempotency-Key', `body-${sent}`],
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

const count = async () => {
  const db = service.db;
  const names = ['payments', 'idempotency'];
  return Promise.all(names.map((name) => db.collection(name).countDocuments()));
};

test.each([
  ['cut off', '{', 'invalid_json'],
  ['empty', '', 'invalid_json'],
  ['white space', ' \r\n\t', 'invalid_json'],
  ['with a trailing comma', '{"amount":1,}', 'invalid_json'],
  ['with a comment', `// hello\n${good}`, 'invalid_json'],
  ['with single quotes', "{'amount':1}", 'invalid_json'],
  ['with something after it', `${good}x`, 'invalid_json'],
  ['two objects', `${good}${good}`, 'invalid_json'],
  ['NaN', '{"amount":NaN}', 'invalid_json'],
  ['a control character in a string', '{"reference":"\u0001"}', 'invalid_json'],
  ['NUL', '\u0000', 'invalid_json'],
  ['a form', 'amount=1050&currency=EUR', 'invalid_json'],
  ['two byte order marks', `\ufeff\ufeff${good}`, 'invalid_json'],
  ['nested without end', '['.repeat(60_000), 'invalid_json'],
  ['nested deep', `${'['.repeat(30_000)}${']'.repeat(30_000)}`, 'invalid_json'],
  ['one key with two values', good.replace('{', '{"amount":1,'), 'invalid_json'],
  ['of thousands of values', `{"x":[${'1,'.repeat(5_000)}1]}`, 'invalid_json'],
  ['a list', `[${good}]`, 'invalid_request'],
  ['a string', JSON.stringify(good), 'invalid_request'],
  ['a number', '5', 'invalid_request'],
  ['a decimal', '5.0', 'invalid_request'],
  ['null', 'null', 'invalid_request'],
] as const)('a body that is %s is refused', async (_, body, code) => {
  const before = await count();
  expectRefusal(await post(body), code);
  expect(await count()).toEqual(before);
});

test('no body at all is refused as such, with and without a type', async () => {
  for (const type of [null, 'application/json']) {
    const answer = await post(undefined, { type });
    expectRefusal(answer, 'invalid_json');
    expect(answer.body.error.message).toContain('empty');
  }
});

test('a refusal of bad JSON tells where, and repeats none of it', async () => {
  const answer = await post('{"card_number":"4111111111111111",}');
  expectRefusal(answer, 'invalid_json');
  expect(answer.body.error.message).toBe('Not valid JSON at position 34.');
  // Long enough to be in no request id.
  expect(answer.text).not.toContain('41111');
});

test('one key given twice with one value counts once', async () => {
  const answer = await post(good.replace('{', '{"amount":1050,'));
  expect([answer.status, answer.body.amount]).toEqual([201, 1_050]);
});

test.each([
  ['of bytes that are not UTF-8', Buffer.concat([latin1('{"reference":"'), latin1('\xff"}')])],
  ['in Latin-1', latin1('{"reference":"caf\xe9"}')],
  ['with an overlong encoding', latin1('{"reference":"\xc0\x80"}')],
  ['with an encoded surrogate', latin1('{"reference":"\xed\xa0\x80"}')],
  ['in UTF-16', Buffer.from(good, 'utf16le')],
  ['compressed without saying so', gzipSync(good)],
])('a body %s is refused, and the next one is read', async (_, body) => {
  expectRefusal(await post(body), 'invalid_json');
  expect((await post(good)).status).toBe(201);
});

test('a byte order mark is passed over', async () => {
  expect((await post(`\ufeff${good}`)).status).toBe(201);
});

test.each([
  [null],
  ['text/plain'],
  ['text/json'],
  ['application/x-www-form-urlencoded'],
  ['multipart/form-data; boundary=x'],
  ['application/jsonp'],
  ['application/vnd.api+json'],
  ['application/json, text/plain'],
  ['application/json; charset=latin1'],
  ['application/json; charset=utf-16'],
])('the type %s is refused as unsupported_media_type', async (type) => {
  expectRefusal(await post(good, { type }), 'unsupported_media_type');
});

test.each([
  ['application/json; charset=utf-8'],
  ['application/json;charset="UTF-8"'],
  ['Application/JSON'],
])('the type %s is taken', async (type) => {
  expect((await post(good, { type })).status).toBe(201);
});

test.each(['gzip', 'br', 'deflate', 'gzip, identity'])(
  'the encoding %s is refused',
  async (name) => {
    const headers = [['Content-Encoding', name]] as const;
    expectRefusal(await post(gzipSync(good), { headers }), 'unsupported_media_type');
  },
);

describe.each([false, true])('with chunked: %s', (chunked) => {
  const padded = (bytes: number) => `${good.slice(0, -1)}${' '.repeat(bytes - good.length)}}`;

  test.each([KIB_64 - 1, KIB_64])('a body of %i bytes is taken', async (bytes) => {
    expect((await post(padded(bytes), { chunked })).status).toBe(201);
  });

  test.each([KIB_64 + 1, 3_000_000])('a body of %i bytes is too large', async (bytes) => {
    const before = await count();
    expectRefusal(await post(padded(bytes), { chunked }), 'body_too_large');
    expect(await count()).toEqual(before);
  });
});

test('the size counts in bytes, not in characters', async () => {
  const body = JSON.stringify(idealPayment({ metadata: 'é'.repeat(KIB_64 / 2) }));
  expect(body.length).toBeLessThan(KIB_64);
  expectRefusal(await post(body), 'body_too_large');
});

test('a cancel takes no body, an empty one or {}, and nothing else', async () => {
  const { body } = await post(good);
  await waitForBank(service, shop.key, body.id);
  const path = `/v1/payments/${body.id}/cancel`;
  expectRefusal(await post('{"reason":"x"}', { path }), 'invalid_request', ['reason']);
  expectRefusal(await post('[]', { path }), 'invalid_request');
  expectRefusal(await post('{', { path }), 'invalid_json');
  expectRefusal(await post('{}', { path, type: 'text/plain' }), 'unsupported_media_type');
  expect((await service.stores.payments.get(body.id))?.status).toBe('awaiting_customer');
  expect((await post(undefined, { path, type: null })).body.status).toBe('cancelled');
  expect((await post('', { path, type: null })).status).toBe(200);
  expect((await post('{}', { path })).status).toBe(200);
});
