import {
  ConnectionError,
  createClient,
  isApiError,
  TimeoutError,
} from '../../../clients/typescript/src';
import type { ClientOptions } from '../../../clients/typescript/src/api';
import { chooseWait } from '../../../clients/typescript/src/retry';
import { answer, breakOff, refuse, stayRunning, useScriptedServer } from './scripted-server';

const server = useScriptedServer();
const BODY = { payment_id: 'p', reason: 'Zoë' };

function connect(options: Partial<ClientOptions> = {}) {
  return createClient({ apiKey: 'sk_sandbox_x', baseUrl: server.url, ...options });
}

// The shortest waits.
beforeEach(() => jest.spyOn(Math, 'random').mockReturnValue(0));
afterEach(() => jest.restoreAllMocks());

test.each([
  ['a broken connection', breakOff],
  ['503', refuse(503, 'temporarily_unavailable')],
  ['429', refuse(429, 'rate_limited')],
  ['a first call that still runs', refuse(409, 'idempotency_request_in_progress')],
])('a create is repeated after %s, with the same key and bytes', async (_, first) => {
  server.script.push(first, answer(201, { id: 'r' }));
  expect(await connect().refunds.create(BODY)).toEqual({ id: 'r' });
  const [one, two] = server.calls;
  expect(server.calls).toHaveLength(2);
  expect(one?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/);
  expect(two?.headers['idempotency-key']).toBe(one?.headers['idempotency-key']);
  expect(two?.body).toBe(one?.body);
  expect(JSON.parse(two?.body ?? '')).toEqual(BODY);
});

test('each call has a key of its own, unless the caller names one', async () => {
  server.script.push(answer(201, {}));
  const { refunds } = connect();
  await refunds.create(BODY);
  await refunds.create(BODY);
  await refunds.create(BODY, { idempotencyKey: 'order-1' });
  const keys = server.calls.map(({ headers }) => headers['idempotency-key']);
  expect(new Set(keys).size).toBe(3);
  expect(keys[2]).toBe('order-1');
});

test.each([
  [400, 'invalid_request'],
  [422, 'idempotency_key_reused'],
])('a refusal is not repeated: %d %s', async (status, code) => {
  server.script.push(refuse(status, code));
  await expect(connect().refunds.create(BODY)).rejects.toMatchObject({ status, code });
  expect(server.calls).toHaveLength(1);
});

test('a simulation is repeated only after a refusal without effect', async () => {
  server.script.push(refuse(429, 'rate_limited'), refuse(503, 'temporarily_unavailable'));
  const { sandbox } = connect();
  const call = sandbox.simulatePayment('p', { event: 'settled' });
  await expect(call).rejects.toMatchObject({ status: 503 });
  expect(server.calls).toHaveLength(2);
});

test.each([
  ['breaks off', breakOff, ConnectionError, { retriesMax: 2 }, {}, 3],
  ['has no answer', stayRunning, TimeoutError, { timeoutMs: 1_000 }, { retriesMax: 1 }, 2],
])('a call that %s is repeated, and the last of all retries throws its error', async (...row) => {
  const [, act, error, ofClient, ofCall, count] = row;
  server.script.push(act);
  await expect(connect(ofClient).payments.get('p', ofCall)).rejects.toBeInstanceOf(error);
  expect(server.calls).toHaveLength(count);
});

test('an aborted signal ends the call and its retries with its reason', async () => {
  const reason = new Error('The customer left.');
  const controller = new AbortController();
  const refuseLater = refuse(503, 'temporarily_unavailable', { 'Retry-After': '30' });
  server.script.push((...exchange) => {
    refuseLater(...exchange);
    controller.abort(reason);
  });
  const call = connect().payments.get('p', { signal: controller.signal });
  await expect(call).rejects.toBe(reason);
  expect(server.calls).toHaveLength(1);
});

test('an error has the code, the fields and the ID of the request', async () => {
  const details = [{ code: 'required', field: 'amount', message: 'is required' }];
  const error = { type: 't', code: 'invalid_request', message: 'No.', details, request_id: 'r' };
  server.script.push(answer(400, { error }));
  const call = connect().refunds.create(BODY);
  const refusal = await call.catch((reason: unknown) => reason);
  const fields = { status: 400, type: 't', message: 'No.', details, requestId: 'r' };
  expect(refusal).toMatchObject(fields);
  expect(isApiError(refusal, 'invalid_request', 'invalid_json')).toBe(true);
  expect(isApiError(refusal, 'invalid_json')).toBe(false);
  expect(isApiError(new Error('another'))).toBe(false);
});

test('an answer that is not from the API is an error, whatever its status', async () => {
  const page = (status: number) => answer(status, '<html>', { 'Request-Id': 'req_2' });
  server.script.push(page(404), (response) => response.end('<html>'), page(302));
  const { payments } = connect();
  const code = 'unexpected_response';
  await expect(payments.get('p')).rejects.toMatchObject({ status: 404, code, requestId: 'req_2' });
  for (const status of [200, 302]) {
    await expect(payments.get('p')).rejects.toMatchObject({ status, code });
  }
});

test('an ID is encoded, and refused if it is empty', async () => {
  server.script.push(answer(200, {}));
  await connect({ baseUrl: `${server.url}/base/` }).payments.get('a/../b?c');
  expect(server.calls[0]?.url).toBe('/base/v1/payments/a%2F..%2Fb%3Fc');
  expect(() => connect().payments.get('')).toThrow('An ID must not be empty.');
  expect(() => connect({ apiKey: '' })).toThrow('apiKey');
  expect(() => connect({ baseUrl: 'localhost' })).toThrow('baseUrl');
});

test('waits double, have jitter, and are never shorter than Retry-After', () => {
  expect([0, 1, 2, 3, 4, 9].map((retry) => chooseWait(retry, null, 1))).toEqual([
    500, 1_000, 2_000, 4_000, 8_000, 8_000,
  ]);
  expect(chooseWait(0, null, 0)).toBe(250);
  expect(chooseWait(0, '3', 0)).toBe(3_000);
  expect(chooseWait(0, '3', 1)).toBe(3_250);
  expect(chooseWait(3, '1', 1)).toBe(4_000);
  expect(chooseWait(0, 'Wed, 21 Oct 2026 07:28:00 GMT', 1)).toBe(500);
  expect(chooseWait(0, '3600', 1)).toBeUndefined();
});
