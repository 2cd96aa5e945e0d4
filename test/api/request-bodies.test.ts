import { gzipSync } from 'node:zlib';
import { buildPayment } from '../support/factories';
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
const countStored = () => Promise.all([shop.count('payments'), shop.count('idempotency')]);
let sent = 0;

/**
 * Posts bytes as they are, under a key of their own, and repeats them while a busy machine answers
 * too late. The type is JSON by default.
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

describe('the text of a body', () => {
  test.each([
    ['cut off', '{', 'invalid_json'],
    ['empty', '', 'invalid_json'],
    ['white space', ' \r\n\t', 'invalid_json'],
    ['followed by something', `${good}x`, 'invalid_json'],
    ['a form', 'amount=1050&currency=EUR', 'invalid_json'],
    ['two byte order marks', `\ufeff\ufeff${good}`, 'invalid_json'],
    ['nested without end', '['.repeat(60_000), 'invalid_json'],
    ['one key with two values', good.replace('{', '{"amount":1,'), 'invalid_json'],
    ['of thousands of values', `{"x":[${'1,'.repeat(5_000)}1]}`, 'invalid_json'],
    ['not UTF-8', latin1('{"reference":"\xff"}'), 'invalid_json'],
    ['in Latin-1', latin1('{"reference":"caf\xe9"}'), 'invalid_json'],
    ['with an overlong encoding', latin1('{"reference":"\xc0\x80"}'), 'invalid_json'],
    ['with an encoded surrogate', latin1('{"reference":"\xed\xa0\x80"}'), 'invalid_json'],
    ['in UTF-16', Buffer.from(good, 'utf16le'), 'invalid_json'],
    ['compressed without saying so', gzipSync(good), 'invalid_json'],
    ['a list', `[${good}]`, 'invalid_request'],
    ['a string', JSON.stringify(good), 'invalid_request'],
    ['a decimal', '5.0', 'invalid_request'],
    ['null', 'null', 'invalid_request'],
  ] as const)('is refused when it is %s', async (_, body, code) => {
    const before = await countStored();
    expectRefusal(await post(body), code);
    expect(await countStored()).toEqual(before);
  });

  test('is missing in words of its own, with and without a type', async () => {
    for (const type of [null, 'application/json']) {
      const answer = await post(undefined, { type });
      expectRefusal(answer, 'invalid_json');
      expect(answer.body.error.message).toContain('empty');
    }
  });

  test('is not quoted by a refusal, which says where the fault is', async () => {
    const answer = await post('{"card_number":"4111111111111111",}');
    expect(answer.body.error.message).toBe('Not valid JSON at position 34.');
    // Long enough to be in no request id.
    expect(answer.text).not.toContain('41111');
  });

  test('may begin with a byte order mark, and repeat a key with the same value', async () => {
    const answer = await post(`\ufeff${good.replace('{', '{"amount":1050,')}`);
    expect([answer.status, answer.body.amount]).toEqual([201, 1_050]);
  });

  test.each([
    null,
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/vnd.api+json',
    'application/json, text/plain',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
  ])('is refused with the type %s', async (type) => {
    expectRefusal(await post(good, { type }), 'unsupported_media_type');
  });

  test.each([
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'Application/JSON',
  ])('is accepted with the type %s', async (type) => {
    expect((await post(good, { type })).status).toBe(201);
  });

  test.each(['gzip', 'br', 'deflate', 'gzip, identity'])(
    'is refused with the encoding %s',
    async (name) => {
      const headers = [['Content-Encoding', name]] as const;
      expectRefusal(await post(gzipSync(good), { headers }), 'unsupported_media_type');
    },
  );

  test.each([
    [KIB_64 - 1, true],
    [KIB_64, true],
    [KIB_64 + 1, false],
    [3_000_000, false],
  ])('of %i bytes is accepted: %s, also in chunks', async (bytes, isAccepted) => {
    const body = `${good.slice(0, -1)}${' '.repeat(bytes - good.length)}}`;
    for (const chunked of [false, true]) {
      const before = await countStored();
      const answer = await post(body, { chunked });
      if (isAccepted) expect(answer.status).toBe(201);
      else {
        expectRefusal(answer, 'body_too_large');
        expect(await countStored()).toEqual(before);
      }
    }
  });

  test('is measured in bytes, not in characters', async () => {
    const body = JSON.stringify(idealPayment({ metadata: 'é'.repeat(KIB_64 / 2) }));
    expect(body.length).toBeLessThan(KIB_64);
    expectRefusal(await post(body), 'body_too_large');
  });

  test('of a cancellation is missing, empty or {}, and nothing else', async () => {
    const { id } = await buildPayment(shop);
    const path = `/v1/payments/${id}/cancel`;
    expectRefusal(await post('{"reason":"x"}', { path }), 'invalid_request', ['reason']);
    expectRefusal(await post('[]', { path }), 'invalid_request');
    expectRefusal(await post('{', { path }), 'invalid_json');
    expectRefusal(await post('{}', { path, type: 'text/plain' }), 'unsupported_media_type');
    expect((await service.stores.payments.get(id))?.status).toBe('awaiting_customer');
    expect((await post(undefined, { path, type: null })).body.status).toBe('cancelled');
    expect((await post('', { path, type: null })).status).toBe(200);
    expect((await post('{}', { path })).status).toBe(200);
  });
});

const AMOUNTS = [
  ...['10.5', '10.0', '1050.00', '1e2', '1e3', '1E3', '1e400', '-1e400', '0.1e2'],
  ...['-0', '0', '-1', '-1050', '100000000000', '9007199254740993', '12345678901234567890'],
  ...['"10"', '"1050"', '""', 'true', '[]', '[1050]', '{}', '{"value":1050}', 'null'],
];

describe.each(CREATES)('the amount of a $resource', ({ name, resource, path, open }) => {
  let creator: Creator;
  beforeAll(async () => {
    creator = await open(service);
  });

  // A refund without an amount takes all that remains.
  test.each(AMOUNTS.filter((amount) => resource !== 'refund' || amount !== 'null'))(
    'is refused when it is %s, and never rounded',
    async (amount) => {
      const body = JSON.stringify({ ...creator.body, amount: '@@' }).replace('"@@"', amount);
      const before = await creator.count(name);
      expectRefusal(await creator.postRaw(path, body), 'invalid_amount', ['amount']);
      expect(await creator.count(name)).toBe(before);
    },
  );
});

describe('a field of a payment', () => {
  const create = (changes: object) => shop.post('/v1/payments', { ...idealPayment(), ...changes });
  const createRaw = (raw: string) => shop.postRaw('/v1/payments', raw);
  /** Writes a field as it is, where `JSON.stringify` would write it differently. */
  const writeField = (field: string, text: string) =>
    JSON.stringify(idealPayment({ [field]: '@@' })).replace('"@@"', text);
  const expectFields = async (changes: object, ...fields: string[]) => {
    const answer = await create(changes);
    expectRefusal(answer, 'invalid_request', fields);
    return answer;
  };

  let before: number[];
  beforeAll(async () => {
    before = await countStored();
  });
  afterAll(async () => expect(await countStored()).toEqual(before));

  test.each([
    ['currency', ['eur', 'EURO', 'ABC', 'XXX', '', ' EUR', '978']],
    ['country', ['nl', 'NLD', 'UK', 'XX', '', 'N\u0000', '528']],
    ['reference', ['x'.repeat(256), 'a\u0000b']],
    ['method', ['x'.repeat(10_000)]],
    ['customer.email', ['bad', '', 'a@', '@b.nl', 'a b@c.nl', 'a@b', 'a@b.nl\n']],
    ['customer.email', [`${'a'.repeat(250)}@b.nl`]],
    ['customer.first_name', ['x'.repeat(101), '\u0000']],
    ['customer.last_name', ['x'.repeat(101)]],
    ['customer.reference', ['x'.repeat(256)]],
  ])('is refused by its name: %s %j', async (field, values) => {
    const [name = '', nested] = field.split('.');
    for (const value of values) {
      const wrong = nested === undefined ? value : { [nested]: value };
      await expectFields({ [name]: wrong }, field);
    }
  });

  test.each([
    ['plain http', 'http://shop.example/'],
    ['user information', 'https://user:pass@shop.example/'],
    ['a user name', 'https://user@shop.example/'],
    ['empty user information', 'https://@shop.example/'],
    ['no scheme', 'shop.example/thanks'],
    ['a path only', '/thanks'],
    ['the scheme of the page', '//shop.example/'],
    ['a script', 'javascript:alert(1)'],
    ['data', 'data:text/html,x'],
    ['no host', 'https://'],
    ['one slash', 'https:/shop.example'],
    ['an impossible port', 'https://shop.example:99999/'],
    ['white space in it', 'https://shop.example/a b'],
    ['white space around it', ' https://shop.example/'],
    ['a line feed', 'https://shop.example/\nLocation: x'],
    ['a control character', 'https://shop.example/\u0001'],
    ['NUL', 'https://shop.example/\u0000'],
    ['DEL', 'https://shop.example/\u007f'],
    ['a back slash', 'https://shop.example\\@evil.example/'],
    ['marks in the host', 'https://shop.example;sandbox/'],
    ['2,049 characters', `https://shop.example/${'x'.repeat(2_049 - 21)}`],
    ['nothing', ''],
    ['null', null],
  ])('is refused when it is a URL of %s', async (_, url) => {
    for (const field of ['success_url', 'error_url']) await expectFields({ [field]: url }, field);
  });

  test.each([5, 1.5, true, [], ['a'], {}, { $ne: null }])(
    'is no text when it is %j',
    async (value) => {
      for (const field of [
        ...['method', 'currency', 'success_url', 'error_url', 'country', 'reference'],
      ]) {
        const { body } = await expectFields({ [field]: value }, field);
        expect(body.error.message).toContain('must be a string');
      }
      for (const field of ['email', 'first_name', 'last_name', 'reference']) {
        await expectFields({ customer: { [field]: value } }, `customer.${field}`);
      }
    },
  );

  test.each([5, 1.5, true, 'a@b.nl', [], [{}]])('is no customer when it is %j', async (value) => {
    const { body } = await expectFields({ customer: value }, 'customer');
    expect(body.error.message).toContain('must be an object');
  });

  test.each(['"\\ud800"', '"\\udc00\\ud800"', '"a\\udfff"'])(
    'is refused with the lone surrogate %s, which could not be returned unchanged',
    async (text) => {
      for (const field of ['reference', 'method']) {
        expectRefusal(await createRaw(writeField(field, text)), 'invalid_request', [field]);
      }
    },
  );

  test.each(['metdata', 'livemode', '__proto__', 'constructor', 'toString', '$where', 'a.b'])(
    'is unknown by the name %s, also within the customer',
    async (name) => {
      const member = `${JSON.stringify(name)}:${JSON.stringify({ amount: 1, isAdmin: true })}`;
      const answer = await createRaw(good.replace(/\}$/, `,${member}}`));
      expectRefusal(answer, 'invalid_request', [name]);
      expect(answer.body.error.details[0].code).toBe('unknown_field');
      const nested = await createRaw(writeField('customer', `{${member}}`));
      expectRefusal(nested, 'invalid_request', [`customer.${name}`]);
      expect(Object.prototype).not.toHaveProperty('isAdmin');
    },
  );

  test('is named with every other one that is wrong or missing', async () => {
    const answer = await createRaw(
      '{"amount":1.5,"currency":1e3,"success_url":3,"country":4,"reference":5,"customer":1.5,' +
        '"metadata":7.0,"x":8}',
    );
    const codes = {
      method: 'required',
      amount: 'invalid_amount',
      currency: 'invalid',
      success_url: 'invalid',
      error_url: 'required',
      country: 'invalid',
      reference: 'invalid',
      customer: 'invalid',
      metadata: 'invalid',
      x: 'unknown_field',
    };
    expectRefusal(answer, 'invalid_request', Object.keys(codes));
    const details: { field: string; code: string }[] = answer.body.error.details;
    const seen = Object.fromEntries(details.map(({ field, code }) => [field, code]));
    expect(seen).toEqual(codes);
    expect(answer.body.error.message).toContain('10 fields');
  });
});

test('a payment accepts null for an optional field, and URLs of 2,048 characters', async () => {
  const url = 'https://shop.example:8443/€?a=b&c=%20#top'.padEnd(2_048, 'x');
  const optional = { country: null, reference: null, metadata: null };
  for (const customer of [null, { email: null }]) {
    const body = { ...idealPayment(optional), customer, success_url: url, error_url: url };
    const answer = await shop.post('/v1/payments', body);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ country: null, customer: { email: null }, metadata: {} });
  }
});
