import { z } from 'zod';
import { type JsonValue, parseJson } from '../../src/base/json';
import { redactExchange } from '../../src/domain/request/body';
import { findEncryptedTexts, findForm } from '../../src/domain/request/fields';
import { redactPath } from '../../src/domain/request/path';
import { redactMessage, redactText } from '../../src/domain/request/text';
import { isOwnWord } from '../../src/domain/request/words';
import { ENDPOINTS } from '../../src/domain/wire';

const CARD = '4539148803436467';
const IBAN = 'NL91ABNA0417164300';

/** Redacts a request with its answer, as JSON. */
function redact(
  body: object,
  response: JsonValue = null,
  raw: string[] = ['metadata'],
  encrypted: readonly string[] = [],
) {
  const text = JSON.stringify(body);
  const { value } = parseJson(text, { raw });
  const { request_body, response_body } = redactExchange({
    encrypted,
    params: {},
    request: { bytes: text.length, value },
    response: response ?? undefined,
    idempotencyKey: undefined,
  });
  return {
    request: JSON.parse(request_body ?? 'null'),
    response: JSON.parse(response_body ?? 'null'),
    text: `${request_body}${response_body}`,
  };
}

test.each([
  `card ${CARD}`,
  '4539 1488 0343 6467',
  '4539-1488-0343-6467',
  '4539.1488.0343.6467',
  '４５３９１４８８０３４３６４６７',
  `iban ${IBAN}`,
  'NL91 ABNA 0417 1643 00',
  'nl91-abna-0417-1643-00',
  'GB29 NWBK 6016 1331 9268 19',
  'sort code 60-16-13',
  '601613',
  '31926819',
  'q.vanderbrugge@example.com',
  'for ada%40example.com',
  'born 1971-03-17',
  '17.03.1971',
  '17/3/1971',
  '17 March 1971',
  'March 17th, 1971',
  '17. März 1971',
  'Grimsbyweg 4711',
  'Lange Straße 5a',
  '12 High Street',
  '3511 QX',
  'SW1A 1AA',
  '10115 Berlin',
  'Jane Doe',
  'for Ludwig van Beethoven',
  'Quenntinella Vanderbrugge-Osei',
  '+31 6 1234 5678',
  'sk_live_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIjKlMnOpQ',
  'whsec_c2VjcmV0c2VjcmV0c2VjcmV0',
  'Bearer abcdefgh',
  'password: hunter2',
  'token=abc',
  'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA',
])('nothing of "%s" is left in a text', (text) => {
  const words = /^(?:card|iban|sort|code|for|born|the|\[redacted\]|\s)*$/;
  expect(redactText(text)).toMatch(words);
});

test('a part that is hidden does not hide its neighbors from a pattern', () => {
  const text = 'for Ada Lovelace, 1971-03-17';
  expect(redactText(text, ['Ada', 'Lovelace, 1971'])).toBe('for [redacted]');
});

test('an answer does not quote what is in the path or the query', () => {
  const error = { code: 'invalid_request', message: 'Quenntinella: no Vanderbrugge, no Osei' };
  const { response_body } = redactExchange({
    params: { Quenntinella: 'x', method: ['Vanderbrugge'], id: 'Osei' },
    request: undefined,
    response: { error },
    idempotencyKey: undefined,
  });
  expect(response_body).toContain('"[redacted]: no [redacted], no [redacted]"');
});

test.each([
  'order-1001',
  'Order 1001, two of three',
  'duplicate',
  '5f0b6a52-1d0c-4c39-9d3b-6c6f0f6a2b11',
  '12345678-1234-4234-8234-123456789012',
  'evt_0a91b2c3-d4e5-4f60-8a7b-9c0d1e2f3a77 was late',
])('"%s" stays', (text) => {
  expect(redactText(text)).toBe(text);
});

test('a message keeps its times and capitals, and loses what it quotes', () => {
  const message = 'The Key "jane@example.com" expired at 2027-01-01T00:00:00.000Z.';
  const redacted = 'The Key "[redacted]" expired at 2027-01-01T00:00:00.000Z.';
  expect(redactMessage(message)).toBe(redacted);
});

test('a long text is not shown, since half a secret fits no pattern', () => {
  expect(redactText('a'.repeat(301))).toBe('[redacted] 301 characters');
});

test('a payment is shown without its payer and the addresses of its pages', () => {
  const payment = {
    method: 'ideal',
    amount: 1050,
    currency: 'EUR',
    country: 'NL',
    success_url: 'https://shop.example/thanks?session=abc',
    reference: 'order-1001 of Wijbrandina',
    customer: { reference: 'payer-41', first_name: 'Wijbrandina', email: null },
    metadata: { cart: 17, gift: true, note: 'wijbrandina', 'e-mail': 'x', nested: { iban: 'y' } },
  };
  const { request } = redact(payment);
  expect(request).toEqual({
    ...payment,
    success_url: 'https://shop.example/[redacted]',
    reference: 'order-1001 of [redacted]',
    customer: { reference: '[redacted]', first_name: '[redacted]', email: null },
    metadata: {
      ...payment.metadata,
      note: '[redacted]',
      'e-mail': '[redacted]',
      nested: { iban: '[redacted]' },
    },
  });
});

test('of a recipient only type, scheme and country are shown', () => {
  const recipient = {
    type: 'card',
    scheme: 'visa',
    country: 'NL',
    first_name: 'Quenntinella',
    card_number: CARD,
    expiry_month: '11',
    date_of_birth: '1971-03-17',
    address_line1: 'Grimsbyweg 4711',
    sort_code: '601613',
    last4: '6467',
    reference: 'Quenntinella, 6467',
  };
  const { request } = redact(recipient, null, [], findEncryptedTexts('/v1/payout-recipients'));
  const hidden = Object.keys(recipient).map((field) => [field, '[redacted]']);
  const shown = { type: 'card', scheme: 'visa', country: 'NL' };
  expect(request).toEqual({ ...Object.fromEntries(hidden), ...shown });
});

test.each([
  { card_number: Number(CARD) },
  { amount: Number(CARD) },
  { amount: CARD },
  { method: 'Quenntinella' },
  { country: 'Quenntinella' },
  { [CARD]: 1 },
  { [`a${CARD}`]: 1 },
  { Quenntinella: 1 },
  { nickname: 'Quenntinella' },
  { type: { first_name: 'Quenntinella' } },
  { method: ['Quenntinella', CARD] },
  { reference: { name: 'Quenntinella' } },
  { customer: ['Quenntinella'] },
  { customer: { [CARD]: 'Quenntinella' } },
  { metadata: { [CARD]: 'x', n: Number(CARD), [IBAN]: [[[IBAN]]] } },
  { metadata: [{ deep: [{ deep: [{ deep: CARD }] }] }] },
  { recipient_id: 'Quenntinella' },
  { success_url: 'Quenntinella' },
])('a wrong body such as %j gives nothing away, nor does the answer that quotes it', (body) => {
  const text = JSON.stringify(body);
  const values = [CARD, IBAN, 'Quenntinella'].filter((value) => text.includes(value));
  const details = values.map((field) => ({ code: 'unknown_field', field, message: field }));
  const message = `${values.join(', ')}: is not a field of this request`;
  const redacted = redact(body, { error: { code: 'invalid_request', message, details } });
  for (const value of values) expect(redacted.text).not.toContain(value);
  expect(redacted.response.error.code).toBe('invalid_request');
});

test.each([
  ['https://shop.example', 'https://shop.example'],
  [`https://x.example/${CARD}#Quenntinella`, 'https://x.example/[redacted]'],
  [`https://x.example/?q=${CARD}`, 'https://x.example/[redacted]'],
  [`https://Quenntinella:${CARD}@x.example/`, '[redacted]'],
  ['mailto:ada@example.com', '[redacted]'],
])('of the URL %s, %s is shown', (success_url, shown) => {
  expect(redact({ success_url }).request).toEqual({ success_url: shown });
});

test('a name beside a hidden one, in a refused method and its texts, is hidden with it', () => {
  const who = 'Wijbrandina Oosterhuis-Quax <w.oosterhuis-payer@example.com>';
  const refused = {
    method: 'Wijbrandina',
    reference: `${who} NL91 ABNA 0417 1643 00`,
    metadata: { [CARD]: CARD, about: `${who}, 1971-03-17`, iban: IBAN, n: Number(CARD) },
  };
  const message = 'Wijbrandina is no payment method.';
  const { text } = redact(refused, { error: { code: 'method_requirements_not_met', message } });
  const secrets = ['Wijbrandina', 'Oosterhuis', 'w.ooster', CARD, IBAN, '0417', '1971'];
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
});

test('an answer is shown without links, secrets and persons', () => {
  const response = {
    ...{ id: 'we_5f0b6a52-1d0c-4c39-9d3b-6c6f0f6a2b11', object: 'webhook_endpoint' },
    ...{ amount: 12_345_678_901, status: 'sent', metadata: { cart: 1 } },
    ...{ signing_secret: 'whsec_x', last4: '1234', address: 'x', wallet_address: 'x' },
    redirect_url: 'https://pay.example/pay/q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA',
    customer: { email: 'ada@example.com' },
    failure: { code: 'declined', message: 'No money' },
  };
  const hidden = '[redacted]';
  expect(redact({}, response).response).toEqual({
    ...response,
    ...{ signing_secret: hidden, last4: hidden, address: hidden, wallet_address: hidden },
    redirect_url: 'https://pay.example/[redacted]',
    customer: { email: hidden },
  });
});

test('numbers are shown as they were sent', () => {
  const { value } = parseJson('{"amount":10.0,"fee":1e3}');
  const { request_body } = redactExchange({
    params: {},
    request: { bytes: 1, value },
    response: undefined,
    idempotencyKey: undefined,
  });
  expect(request_body).toBe('{"amount":10.0,"fee":1e3}');
});

test.each([
  ['no JSON', { bytes: 312 }, '"[redacted] 312 bytes that are no JSON object"'],
  ['a list', { bytes: 20, value: [CARD] }, '"[redacted] 20 bytes that are no JSON object"'],
  ['nothing', { bytes: 0 }, null],
])('of a body that is %s, nothing is shown', (_, request, shown) => {
  const exchange = { params: {}, request, response: undefined, idempotencyKey: undefined };
  expect(redactExchange(exchange).request_body).toBe(shown);
});

test('a large body is cut between its values', () => {
  const metadata = Object.fromEntries(
    Array.from({ length: 50 }, (_, n) => [`k${n}`, 'x y '.repeat(40)]),
  );
  const many = { metadata, enabled_events: Array(5_000).fill('ideal') };
  const { request, text } = redact(many);
  expect(text.length).toBeLessThan(5_000);
  expect(request.metadata['[cut]']).toBe(true);
  const list = redact({ enabled_events: Array(5_000).fill('ideal') });
  expect(list.text.length).toBeLessThan(5_000);
  expect(list.request.enabled_events.at(-1)).toBe('[cut]');
});

test('an idempotency key is a text, too', () => {
  const key = (idempotencyKey: string) =>
    redactExchange({ params: {}, request: undefined, response: undefined, idempotencyKey })
      .idempotency_key;
  expect(key('order-1001')).toBe('order-1001');
  expect(key(`pay ${CARD}`)).toBe('pay [redacted]');
});

test.each([
  ['/v1/payments', {}, '/v1/payments'],
  ['/v1/payments/:id/cancel', { id: 'order-1001' }, '/v1/payments/order-1001/cancel'],
  ['/v1/payments/:id', { id: CARD }, '/v1/payments/[redacted]'],
  ['/v1/payments/:id', { id: 'Quenntinella' }, '/v1/payments/[redacted]'],
  ['/v1/payments/:id', { id: 'ada@example.com' }, '/v1/payments/[redacted]'],
])('the path %s of %j is %s', (route, params, path) => {
  expect(redactPath(route, params)).toBe(path);
});

test('no field of a recipient or a payer is shown', () => {
  const recipient = ENDPOINTS.find(({ operation }) => operation === 'createRecipient')?.body?.shape;
  const forms = Object.keys(recipient ?? {}).map((field) => [field, findForm(field)] as const);
  const shown = forms.filter(([, form]) => form !== undefined).map(([field]) => field);
  expect(shown.toSorted()).toEqual(['country', 'reference', 'scheme', 'type']);
});

/** Values that a schema names, as texts. */
function namedValues(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([name, value]) => {
    if (name === 'enum' || name === 'const') return [value].flat().map(String);
    return name === 'examples' ? [] : namedValues(value);
  });
}

test('every value that a request can choose from a list is a word of the API', () => {
  const bodies = ENDPOINTS.flatMap(({ body }) => (body === undefined ? [] : [body]));
  const values = bodies.flatMap((body) =>
    namedValues(z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' })),
  );
  expect(values.length).toBeGreaterThan(20);
  expect(values.filter((value) => !isOwnWord(value))).toEqual([]);
});
