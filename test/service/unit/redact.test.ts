import { type JsonValue, parseJson } from '../../../src/base/json';
import { ENDPOINTS } from '../../../src/domain/wire';
import { redactExchange, redactPath } from '../../../src/service/events/requests';

const CARD = '4539148803436467';
const IBAN = 'NL91ABNA0417164300';
const ID = '5f0b6a52-1d0c-4c39-9d3b-6c6f0f6a2b11';
const HIDDEN = '[redacted]';

type Exchange = Parameters<typeof redactExchange>[0];

function find(operation: string) {
  const endpoint = ENDPOINTS.find((one) => one.operation === operation);
  if (endpoint === undefined) throw new Error(`no operation ${operation}`);
  return endpoint;
}

const redactParts = (changes: Partial<Exchange>, operation = 'createPayment') =>
  redactExchange({
    endpoint: find(operation),
    params: {},
    query: {},
    request: undefined,
    status: 201,
    response: undefined,
    idempotencyKey: undefined,
    ...changes,
  });

/** Redacts a request with its answer. */
function redact(
  body: object,
  { operation = 'createPayment', ...changes }: Partial<Exchange> & { operation?: string } = {},
) {
  const text = JSON.stringify(body);
  const { value } = parseJson(text, { raw: ['metadata'] });
  const request = { bytes: text.length, value };
  const { request_body, response_body } = redactParts({ request, ...changes }, operation);
  return {
    request: JSON.parse(request_body ?? 'null'),
    response: JSON.parse(response_body ?? 'null'),
    text: `${request_body}${response_body}`,
  };
}

function refusal(message: string, details: JsonValue[] = []): Partial<Exchange> {
  const error = { type: 'invalid_request_error', code: 'invalid_request', message, details };
  return { status: 400, response: { error: { ...error, request_id: ID } } };
}

const METADATA = { cart: 17, note: 'wijbrandina' };
const PAYMENT = { method: 'ideal', amount: 1_050, currency: 'EUR', reference: 'order-1001' };
const ANSWER = {
  ...{ id: ID, object: 'payment', status: 'failed', amount: 12_345_678_901, currency: 'EUR' },
  ...{ country: null, method: 'ideal', livemode: false, created_at: '2026-11-29T10:00:00.000Z' },
};
const ENDPOINT = { id: `we_${ID}`, enabled_events: ['payment.settled'] };
const RECIPIENT = { type: 'card', scheme: 'visa', country: 'NL' };
const others = Object.keys(find('createRecipient').body?.shape ?? {}).filter(
  (field) => !Object.hasOwn(RECIPIENT, field),
);

test.each<[string, string, 'request' | 'response', shown: object, hidden: object, left?: object]>([
  [
    'a payment what routes it, and references without words of their own',
    ...(['createPayment', 'request', { ...PAYMENT, country: 'NL' }] as const),
    { success_url: 'https://shop.example/thanks?session=abc', metadata: METADATA },
  ],
  [
    'a customer that there is one',
    ...(['createPayment', 'request', PAYMENT] as const),
    { customer: { reference: 'payer-41', first_name: 'Wijbrandina', email: null } },
    { customer: { reference: HIDDEN, first_name: HIDDEN, email: null } },
  ],
  [
    'a recipient the type, scheme and country',
    ...(['createRecipient', 'request', RECIPIENT] as const),
    Object.fromEntries(others.map((field) => [field, 'eleven'])),
  ],
  [
    'an answer ids, states, amounts and times',
    ...(['createPayment', 'response', ANSWER] as const),
    { redirect_url: 'https://pay.example/pay/q83vEjRWeJCrze8SNFZ4kKvN7xI0Vni', metadata: METADATA },
  ],
  [
    'a failure its code, and nothing of its customer',
    ...(['createPayment', 'response', ANSWER] as const),
    { customer: { email: 'ada@example.com' }, failure: { code: 'AM04', message: 'Ada has none' } },
    { customer: { email: HIDDEN }, failure: { code: 'AM04', message: HIDDEN } },
  ],
  [
    'an endpoint its id and events',
    ...(['createWebhookEndpoint', 'response', ENDPOINT] as const),
    { url: 'https://x.example/a?token=b', signing_secret: 'whsec_x' },
  ],
])('the log shows of %s, and no more', (_, operation, part, shown, hidden, ...[left]) => {
  const body: JsonValue = JSON.parse(JSON.stringify({ ...shown, ...hidden }));
  const redacted = redact(part === 'request' ? Object(body) : {}, { operation, response: body });
  const masked = Object.fromEntries(Object.keys(hidden).map((field) => [field, HIDDEN]));
  expect(redacted[part]).toEqual({ ...shown, ...(left ?? masked) });
  expect(others).toContain('card_number');
});

test.each([
  { card_number: Number(CARD) },
  { amount: Number(CARD) },
  { amount: CARD },
  { method: 'Quenntinella' },
  { country: 'Quenntinella' },
  { currency: CARD },
  { [CARD]: 1 },
  { Quenntinella: 1 },
  { nickname: 'Quenntinella' },
  { method: { first_name: 'Quenntinella' } },
  { method: ['Quenntinella', CARD] },
  { reference: { name: 'Quenntinella' } },
  { customer: ['Quenntinella'] },
  { customer: { [CARD]: 'Quenntinella' } },
  { metadata: { [CARD]: 'x', n: Number(CARD), [IBAN]: [[[IBAN]]] } },
  { success_url: 'Quenntinella' },
])('a wrong value in the body %j is redacted, also from the answer that quotes it', (body) => {
  const text = JSON.stringify(body);
  const values = 'metadata' in body ? [] : [CARD, 'Quenntinella'];
  const quoted = values.filter((value) => text.includes(value));
  const details = quoted.map((field) => ({ code: 'unknown_field', field, message: field }));
  const redacted = redact(body, refusal(`${quoted.join(', ')}: is not a field`, details));
  for (const value of [CARD, IBAN, 'Quenntinella']) expect(redacted.text).not.toContain(value);
  expect(redacted.response.error.code).toBe('invalid_request');
});

test.each<Partial<Exchange>>([
  // The start of a hidden value, in another case.
  { request: { bytes: 1, value: { reference: `QUENNTINELLA ${'OOSTERHUIS '.repeat(9)}` } } },
  { params: { id: 'Quenntinella' } },
  { query: { Quenntinella: 'x' } },
  { query: { created_before: ['Quenntinella'] } },
])('a message that quotes %j is redacted', (changes) => {
  const { response_body } = redactParts({ ...refusal('Quenntinella Oosterhuis: no'), ...changes });
  expect(response_body).toContain(`"message":"${HIDDEN}"`);
});

test('a message is shown with the fields that it names', () => {
  const detail = { code: 'invalid', field: 'customer.email', message: 'must be an e-mail address' };
  const message = 'customer.email: must be an e-mail address';
  const { response } = redact({ customer: { email: 'Quenntinella' } }, refusal(message, [detail]));
  expect(response.error).toMatchObject({ message, details: [detail], request_id: ID });
});

test('a message about a body that could not be parsed, or about very many values, is redacted', () => {
  const twice = refusal('The key "Quenntinella" appears twice.');
  const unparsed = redactParts({ request: { bytes: 30 }, ...twice });
  expect(unparsed.response_body).not.toContain('Quenntinella');
  const fields = Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`field ${n}`, n]));
  expect(redact(fields, refusal('must be at least 1')).response.error.message).toBe(HIDDEN);
});

test('numbers are shown as they were sent', () => {
  const text = '{"amount":10.0}';
  const request = { bytes: 1, value: parseJson(text).value };
  expect(redactParts({ request }).request_body).toBe(text);
});

test.each([
  ['is no JSON', { bytes: 312 }, '"[redacted] 312 bytes that are no JSON object"'],
  ['is a list', { bytes: 20, value: [CARD] }, '"[redacted] 20 bytes that are no JSON object"'],
  ['is empty', { bytes: 0 }, null],
])('nothing is shown of a body that %s', (_, request, shown) => {
  expect(redactParts({ request }).request_body).toBe(shown);
});

test('a long list is cut', () => {
  const enabled_events = Array(5_000).fill('payment.settled');
  const { request } = redact({ enabled_events }, { operation: 'createWebhookEndpoint' });
  expect(request.enabled_events).toEqual([...Array(10).fill('payment.settled'), '[cut]']);
});

test.each([
  ['order-1001', 'order-1001'],
  [`order-${ID}`, `order-${ID}`],
  [ID, ID],
  [`pay ${CARD}`, HIDDEN],
  [CARD, HIDDEN],
  ['order-1001001', HIDDEN],
  ['ada@example.com', HIDDEN],
  ['Quenntinella', HIDDEN],
])('the idempotency key "%s" is shown as "%s"', (idempotencyKey, shown) => {
  expect(redactParts({ idempotencyKey }).idempotency_key).toBe(shown);
});

test.each([
  ['/v1/payments', {}, '/v1/payments'],
  ['/v1/payments/:id/cancel', { id: 'order-1001' }, '/v1/payments/order-1001/cancel'],
  ['/v1/payments/:id', { id: `evt_${ID}` }, `/v1/payments/evt_${ID}`],
  ['/v1/payments/:id', { id: CARD }, '/v1/payments/[redacted]'],
  ['/v1/payments/:id', { id: 'Quenntinella' }, '/v1/payments/[redacted]'],
  ['/v1/payments/:id', { id: 'ada@example.com' }, '/v1/payments/[redacted]'],
])('the path %s with %j is shown as %s', (route, params, path) => {
  expect(redactPath(route, params)).toBe(path);
});
