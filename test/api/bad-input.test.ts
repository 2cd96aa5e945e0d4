import { idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';
import { CREATES, type Creator } from './create-setting';
import { expectRefusal } from './refusal';

const service = useService();
const shop = useAccount(service);

const create = (body: object) => shop.post('/v1/payments', body);
const createRaw = (raw: string) => shop.postRaw('/v1/payments', raw);
/** The field as it is written, where JSON.stringify would write it in another way. */
const written = (field: string, text: string) =>
  JSON.stringify(idealPayment({ [field]: '@@' })).replace('"@@"', text);

const AMOUNTS = [
  ...['10.5', '10.0', '1050.00', '1e2', '1e3', '1E3', '1e400', '-1e400', '0.1e2'],
  ...['-0', '0', '-1', '-1050', '100000000000', '9007199254740993', '12345678901234567890'],
  ...['"10"', '"1050"', '""', 'true', '[]', '[1050]', '{}', '{"value":1050}', 'null'],
];

describe.each(CREATES)('of a $resource', ({ name, resource, path, open }) => {
  let creator: Creator;
  beforeAll(async () => {
    creator = await open(service);
  });

  // A refund without an amount is of all that remains.
  test.each(AMOUNTS.filter((amount) => resource !== 'refund' || amount !== 'null'))(
    'the amount %s is refused as invalid_amount, never rounded',
    async (amount) => {
      const body = JSON.stringify({ ...creator.body, amount: '@@' }).replace('"@@"', amount);
      const before = await creator.count(name);
      expectRefusal(await creator.postRaw(path, body), 'invalid_amount', ['amount']);
      expect(await creator.count(name)).toBe(before);
    },
  );
});

test.each([
  ['currency', ['eur', 'Eur', 'EURO', 'EU', 'ABC', 'XXX', '', ' EUR', '€', '978']],
  ['country', ['nl', 'NLD', 'UK', 'XX', 'EU', '', 'N\u0000', '528']],
])('%s must be a real ISO code in capital letters', async (field, codes) => {
  for (const code of codes) {
    expectRefusal(await create(idealPayment({ [field]: code })), 'invalid_request', [field]);
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
  ['a port that is none', 'https://shop.example:99999/'],
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
  ['another type', 5],
  ['null', null],
])('a URL of %s is refused, whichever it is', async (_, url) => {
  for (const field of ['success_url', 'error_url']) {
    expectRefusal(await create(idealPayment({ [field]: url })), 'invalid_request', [field]);
  }
});

test('a URL of 2,048 characters, with query, port, fragment and unicode, is taken', async () => {
  const url = 'https://shop.example:8443/€?a=b&c=%20#top'.padEnd(2_048, 'x');
  const { status } = await shop.post(
    '/v1/payments',
    idealPayment({ success_url: url, error_url: url, reference: 'accepted' }),
    { idempotencyKey: 'accepted-url' },
  );
  expect(status).toBe(201);
});

const types = [5, 1.5, true, [], ['a'], {}, { $ne: null }];

test.each(['method', 'currency', 'success_url', 'error_url', 'country', 'reference'])(
  '%s must be a string',
  async (field) => {
    for (const value of types) {
      const answer = await create(idealPayment({ [field]: value }));
      expectRefusal(answer, 'invalid_request', [field]);
      expect(answer.body.error.message).toContain('must be a string');
    }
  },
);

test('customer must be an object of its four strings', async () => {
  for (const value of [5, 1.5, true, 'a@b.nl', [], [{}]]) {
    const answer = await create(idealPayment({ customer: value }));
    expectRefusal(answer, 'invalid_request', ['customer']);
    expect(answer.body.error.message).toContain('must be an object');
  }
  for (const field of ['email', 'first_name', 'last_name', 'reference']) {
    for (const value of types) {
      const answer = await create(idealPayment({ customer: { [field]: value } }));
      expectRefusal(answer, 'invalid_request', [`customer.${field}`]);
    }
  }
});

test.each(['bad', '', 'a@', '@b.nl', 'a b@c.nl', 'a@b', 'a@b.nl\n', `${'a'.repeat(250)}@b.nl`])(
  'customer.email "%s" is refused',
  async (email) => {
    const answer = await create(idealPayment({ customer: { email } }));
    expectRefusal(answer, 'invalid_request', ['customer.email']);
  },
);

test.each([
  ['a reference of 256 characters', { reference: 'x'.repeat(256) }, 'reference'],
  ['a first name of 101', { customer: { first_name: 'x'.repeat(101) } }, 'customer.first_name'],
  ['a last name of 101', { customer: { last_name: 'x'.repeat(101) } }, 'customer.last_name'],
  [
    'a customer reference of 256',
    { customer: { reference: 'x'.repeat(256) } },
    'customer.reference',
  ],
  ['a reference with NUL', { reference: 'a\u0000b' }, 'reference'],
  ['a name with NUL', { customer: { first_name: '\u0000' } }, 'customer.first_name'],
  ['a method of endless length', { method: 'x'.repeat(10_000) }, 'method'],
])('%s is refused', async (_, change, field) => {
  expectRefusal(await create(idealPayment(change)), 'invalid_request', [field]);
});

test.each(['"\\ud800"', '"\\udc00\\ud800"', '"a\\udfff"'])(
  'the lone surrogate %s is refused: it could not be returned unchanged',
  async (text) => {
    for (const field of ['reference', 'method']) {
      expectRefusal(await createRaw(written(field, text)), 'invalid_request', [field]);
    }
  },
);

test('unknown fields are refused by name, nested ones too', async () => {
  const body = idealPayment({ metdata: {}, livemode: true, customer: { phone: '1', email: null } });
  const answer = await create(body);
  expectRefusal(answer, 'invalid_request', ['metdata', 'livemode', 'customer.phone']);
  expect(new Set(answer.body.error.details.map((d: { code: string }) => d.code))).toEqual(
    new Set(['unknown_field']),
  );
});

test.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '$where', 'a.b'])(
  'the key %s changes nothing: it is an unknown field',
  async (name) => {
    const value = JSON.stringify({ amount: 1, isAdmin: true });
    const raw = JSON.stringify(idealPayment()).replace(/\}$/, `,${JSON.stringify(name)}:${value}}`);
    expectRefusal(await createRaw(raw), 'invalid_request', [name]);
    const nested = written('customer', `{${JSON.stringify(name)}:${value}}`);
    expectRefusal(await createRaw(nested), 'invalid_request', [`customer.${name}`]);
    expect(Object.prototype).not.toHaveProperty('isAdmin');
  },
);

test('every offending field is named at once, those that are missing too', async () => {
  const answer = await createRaw(
    '{"amount":1.5,"currency":1e3,"success_url":3,"country":4,"reference":5,"customer":1.5,' +
      '"metadata":7.0,"x":8}',
  );
  expectRefusal(answer, 'invalid_request', [
    'method',
    'amount',
    'currency',
    'success_url',
    'error_url',
    'country',
    'reference',
    'customer',
    'metadata',
    'x',
  ]);
  const codes = Object.fromEntries(
    answer.body.error.details.map((d: { field: string; code: string }) => [d.field, d.code]),
  );
  expect(codes).toMatchObject({
    method: 'required',
    amount: 'invalid_amount',
    currency: 'invalid',
    error_url: 'required',
    x: 'unknown_field',
  });
  expect(answer.body.error.message).toContain('10 fields');
});

test('null says the same as leaving an optional field out', async () => {
  const empty = { country: null, reference: null, customer: null, metadata: null };
  const { status, body } = await shop.post(
    '/v1/payments',
    { ...idealPayment(empty), reference: 'accepted', customer: { email: null } },
    { idempotencyKey: 'accepted-null' },
  );
  expect(status).toBe(201);
  expect(body).toMatchObject({ country: null, customer: { email: null }, metadata: {} });
});

test('what was refused left nothing behind', async () => {
  const { account_id } = shop;
  const left = { payments: { $ne: 'accepted' }, idempotency: { $not: /^accepted/ } };
  const payments = service.collection('payments');
  expect(await payments.countDocuments({ account_id, reference: left.payments })).toBe(0);
  const claims = service.collection('idempotency');
  expect(await claims.countDocuments({ account_id, key: left.idempotency })).toBe(0);
});
