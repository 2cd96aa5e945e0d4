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

type Exchange = Parameters<typeof redactExchange>[0];

const redactParts = (changes: Partial<Exchange>) =>
  redactExchange({
    params: {},
    request: undefined,
    response: undefined,
    idempotencyKey: undefined,
    ...changes,
  });

/** Redacts a request with its answer, as JSON. */
function redact(body: object, response?: JsonValue, changes: Partial<Exchange> = {}) {
  const text = JSON.stringify(body);
  const { value } = parseJson(text, { raw: ['metadata'] });
  const request = { bytes: text.length, value };
  const { request_body, response_body } = redactParts({ request, response, ...changes });
  return {
    request: JSON.parse(request_body ?? 'null'),
    response: JSON.parse(response_body ?? 'null'),
    text: `${request_body}${response_body}`,
  };
}

test.each([
  ['cards', [`card ${CARD}`, '4539 1488 0343 6467', '4539-1488-0343-6467', '4539.1488.0343.6467']],
  ['cards in full-width digits', ['４５３９１４８８０３４３６４６７']],
  ['IBANs', [`iban ${IBAN}`, 'NL91 ABNA 0417 1643 00', 'nl91-abna-0417-1643-00']],
  ['British accounts', ['GB29 NWBK 6016 1331 9268 19', 'sort code 60-16-13', '601613', '31926819']],
  ['e-mail addresses', ['q.vanderbrugge@example.com', 'for ada%40example.com']],
  ['birthdays in digits', ['born 1971-03-17', '17.03.1971', '17/3/1971']],
  ['birthdays in words', ['17 March 1971', 'March 17th, 1971', '17. März 1971']],
  ['streets', ['Grimsbyweg 4711', 'Lange Straße 5a', '12 High Street']],
  ['postal codes', ['3511 QX', 'SW1A 1AA', '10115 Berlin']],
  ['names', ['Jane Doe', 'for Ludwig van Beethoven', 'Quenntinella Vanderbrugge-Osei']],
  ['telephone numbers', ['+31 6 1234 5678']],
  ['keys', ['sk_live_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIjKlMnOpQ', 'Bearer abcdefgh']],
  ['webhook secrets', ['whsec_c2VjcmV0c2VjcmV0c2VjcmV0']],
  ['named secrets', ['password: hunter2', 'token=abc']],
  ['random texts', ['q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA']],
])('redacts %s from a text', (_, texts) => {
  const words = /^(?:card|iban|sort|code|for|born|the|\[redacted\]|\s)*$/;
  expect(texts.map((text) => redactText(text)).filter((text) => !words.test(text))).toEqual([]);
});

test('redacts a part that overlaps with a hidden one', () => {
  const text = 'for Ada Lovelace, 1971-03-17';
  expect(redactText(text, ['Ada', 'Lovelace, 1971'])).toBe('for [redacted]');
});

test('redacts from an answer what it quotes of the path and the query', () => {
  const error = { code: 'invalid_request', message: 'Quenntinella: no Vanderbrugge, no Osei' };
  const params = { Quenntinella: 'x', method: ['Vanderbrugge'], id: 'Osei' };
  const { response_body } = redactParts({ params, response: { error } });
  expect(response_body).toContain('"[redacted]: no [redacted], no [redacted]"');
});

test.each([
  'order-1001',
  'Order 1001, two of three',
  'duplicate',
  '5f0b6a52-1d0c-4c39-9d3b-6c6f0f6a2b11',
  '12345678-1234-4234-8234-123456789012',
  'evt_0a91b2c3-d4e5-4f60-8a7b-9c0d1e2f3a77 was late',
])('shows the text "%s", which has nothing personal', (text) => {
  expect(redactText(text)).toBe(text);
});

test('shows the times and capitals of a message of the service, but not what it quotes', () => {
  const message = 'The Key "jane@example.com" expired at 2027-01-01T00:00:00.000Z.';
  const redacted = 'The Key "[redacted]" expired at 2027-01-01T00:00:00.000Z.';
  expect(redactMessage(message)).toBe(redacted);
});

test('redacts a long text as a whole, since half a secret fits no pattern', () => {
  expect(redactText('a'.repeat(301))).toBe('[redacted] 301 characters');
});

test('shows a payment without its payer and the paths of its pages', () => {
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
  const note = '[redacted]';
  expect(redact(payment).request).toEqual({
    ...payment,
    success_url: 'https://shop.example/[redacted]',
    reference: 'order-1001 of [redacted]',
    customer: { reference: '[redacted]', first_name: '[redacted]', email: null },
    metadata: { ...payment.metadata, note, 'e-mail': '[redacted]', nested: { iban: '[redacted]' } },
  });
});

test('shows only the type, scheme and country of a recipient', () => {
  const shown = { type: 'card', scheme: 'visa', country: 'NL' };
  const hidden = {
    first_name: 'Quenntinella',
    reference: 'Quenntinella, 6467',
    last4: '6467',
    card_number: CARD,
    expiry_month: '11',
    sort_code: '601613',
    date_of_birth: '1971-03-17',
    address_line1: 'Grimsbyweg 4711',
  };
  const encrypted = findEncryptedTexts('/v1/payout-recipients');
  const { request } = redact({ ...shown, ...hidden }, undefined, { encrypted });
  const redacted = Object.keys(hidden).map((field) => [field, '[redacted]']);
  expect(request).toEqual({ ...Object.fromEntries(redacted), ...shown });
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
  { metadata: [{ inner: [{ inner: [{ inner: CARD }] }] }] },
  { recipient_id: 'Quenntinella' },
  { success_url: 'Quenntinella' },
])('redacts what is wrong in the body %j, also from the answer that quotes it', (body) => {
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
])('shows the URL %s as %s', (success_url, shown) => {
  expect(redact({ success_url }).request).toEqual({ success_url: shown });
});

test('redacts a payer from a refused method and from the texts and metadata next to it', () => {
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

test('shows an answer without links, secrets and personal data', () => {
  const hidden = '[redacted]';
  const secrets = { signing_secret: 'whsec_x', last4: '1234', address: 'x', wallet_address: 'x' };
  const response = {
    id: 'we_5f0b6a52-1d0c-4c39-9d3b-6c6f0f6a2b11',
    object: 'webhook_endpoint',
    amount: 12_345_678_901,
    status: 'sent',
    metadata: { cart: 1 },
    ...secrets,
    redirect_url: 'https://pay.example/pay/q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA',
    customer: { email: 'ada@example.com' },
    failure: { code: 'declined', message: 'No money' },
  };
  expect(redact({}, response).response).toEqual({
    ...response,
    ...Object.fromEntries(Object.keys(secrets).map((field) => [field, hidden])),
    redirect_url: 'https://pay.example/[redacted]',
    customer: { email: hidden },
  });
});

test('shows numbers as they were sent', () => {
  const text = '{"amount":10.0,"fee":1e3}';
  const request = { bytes: 1, value: parseJson(text).value };
  expect(redactParts({ request }).request_body).toBe(text);
});

test.each([
  ['is no JSON', { bytes: 312 }, '"[redacted] 312 bytes that are no JSON object"'],
  ['is a list', { bytes: 20, value: [CARD] }, '"[redacted] 20 bytes that are no JSON object"'],
  ['is empty', { bytes: 0 }, null],
])('shows nothing of a body that %s', (_, request, shown) => {
  expect(redactParts({ request }).request_body).toBe(shown);
});

test('cuts a large body between its values', () => {
  const metadata = Object.fromEntries(
    Array.from({ length: 50 }, (_, n) => [`k${n}`, 'x y '.repeat(40)]),
  );
  const enabled_events = Array(5_000).fill('ideal');
  const both = redact({ metadata, enabled_events });
  expect(both.text.length).toBeLessThan(5_000);
  expect(both.request.metadata['[cut]']).toBe(true);
  const list = redact({ enabled_events });
  expect(list.text.length).toBeLessThan(5_000);
  expect(list.request.enabled_events.at(-1)).toBe('[cut]');
});

test.each([
  ['order-1001', 'order-1001'],
  [`pay ${CARD}`, 'pay [redacted]'],
])('shows the idempotency key "%s" as "%s"', (idempotencyKey, shown) => {
  expect(redactParts({ idempotencyKey }).idempotency_key).toBe(shown);
});

test.each([
  ['/v1/payments', {}, '/v1/payments'],
  ['/v1/payments/:id/cancel', { id: 'order-1001' }, '/v1/payments/order-1001/cancel'],
  ['/v1/payments/:id', { id: CARD }, '/v1/payments/[redacted]'],
  ['/v1/payments/:id', { id: 'Quenntinella' }, '/v1/payments/[redacted]'],
  ['/v1/payments/:id', { id: 'ada@example.com' }, '/v1/payments/[redacted]'],
])('shows the path %s with %j as %s', (route, params, path) => {
  expect(redactPath(route, params)).toBe(path);
});

test('shows no field of a recipient but its country, reference, scheme and type', () => {
  const recipient = ENDPOINTS.find(({ operation }) => operation === 'createRecipient')?.body?.shape;
  const forms = Object.keys(recipient ?? {}).map((field) => [field, findForm(field)] as const);
  const shown = forms.filter(([, form]) => form !== undefined).map(([field]) => field);
  expect(shown.toSorted()).toEqual(['country', 'reference', 'scheme', 'type']);
});

/** Values that a JSON schema names, as texts. */
function listNamedValues(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([name, value]) => {
    if (name === 'enum' || name === 'const') return [value].flat().map(String);
    return name === 'examples' ? [] : listNamedValues(value);
  });
}

test('shows every value that a request can choose from a list, as a word of the API', () => {
  const values = ENDPOINTS.flatMap(({ body }) =>
    body === undefined
      ? []
      : listNamedValues(z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' })),
  );
  expect(values.length).toBeGreaterThan(20);
  expect(values.filter((value) => !isOwnWord(value))).toEqual([]);
});
