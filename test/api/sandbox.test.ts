import { call, idealPayment, settledPayment } from '../support/http';
import { openKey, useService } from '../support/service';
import { useShop } from './payout-setting';
import { expectRefusal } from './refusal';

const service = useService();
const shop = useShop(service);
let key: string;

beforeAll(async () => {
  ({ key } = shop);
});

const post = (path: string, body?: unknown) => call(service.url, 'POST', path, { key, body });
const create = async () => (await post('/v1/payments', idealPayment())).body;
const simulate = (id: string, body: unknown) => post(`/v1/sandbox/payments/${id}/simulate`, body);
const createRefund = async () => {
  const { id: payment_id } = await settledPayment(service, key);
  return (await post('/v1/refunds', { payment_id })).body;
};
const createPayout = async () => (await shop.paid()).body;
const MAKE = { payment: create, refund: createRefund, payout: createPayout };
const simulateRefund = (id: string, body: unknown) =>
  post(`/v1/sandbox/refunds/${id}/simulate`, body);

test('every state that a bank can bring about can be simulated, and read afterwards', async () => {
  for (const [event, status] of [
    ['authorized', 'authorized'],
    ['settled', 'settled'],
    ['failed', 'failed'],
    ['expired', 'expired'],
  ]) {
    const { id } = await create();
    const answer = await simulate(id, { event });
    expect([answer.status, answer.body.status]).toEqual([200, status]);
    const read = await call(service.url, 'GET', `/v1/payments/${id}`, { key });
    expect(read.body).toEqual(answer.body);
  }
});

test('a failure carries the code and reason that were given, or says that the bank declined', async () => {
  const told = await simulate((await create()).id, { event: 'failed', code: 'x', reason: 'Why.' });
  expect(told.body.failure).toEqual({ code: 'x', message: 'Why.' });
  const bare = await simulate((await create()).id, { event: 'failed', code: null, reason: null });
  expect(bare.body.failure).toEqual({ code: 'declined', message: expect.any(String) });
});

test('what a payment can no longer do leaves it unchanged', async () => {
  const { id } = await create();
  const settled = await simulate(id, { event: 'settled' });
  for (const event of ['authorized', 'settled', 'expired', 'failed']) {
    const after = await simulate(id, { event });
    expect([event, after.status, after.body]).toEqual([event, 200, settled.body]);
  }
});

test.each(['settled', 'failed'])('a refund can be %s, and stays so', async (event) => {
  const { id } = await createRefund();
  const moved = await simulateRefund(id, { event });
  expect([moved.status, moved.body.status]).toEqual([200, event]);
  expect((await call(service.url, 'GET', `/v1/refunds/${id}`, { key })).body).toEqual(moved.body);
  for (const later of ['settled', 'failed', 'settled']) {
    const after = await simulateRefund(id, { event: later });
    expect([later, after.status, after.body]).toEqual([later, 200, moved.body]);
  }
});

test('a failed refund carries what was given, or says that the bank refused it', async () => {
  const told = { event: 'failed', code: 'x', reason: 'Why.' };
  const { body } = await simulateRefund((await createRefund()).id, told);
  expect(body.failure).toEqual({ code: 'x', message: 'Why.' });
  const bare = await simulateRefund((await createRefund()).id, { event: 'failed', code: null });
  expect(bare.body.failure).toEqual({ code: 'refund_refused', message: expect.any(String) });
});

describe.each([
  ['payment', 'returned'],
  ['refund', 'authorized'],
  ['payout', 'settled'],
] as const)('about a %s', (resource, foreign) => {
  /** Read before and after each refusal, so that one serves them all. */
  let id: string;
  beforeAll(async () => {
    ({ id } = await MAKE[resource]());
  });

  test.each([
    ['an event that is none', { event: 'paid' }, ['event']],
    ['an event of another resource', { event: foreign }, ['event']],
    ['no event', {}, ['event']],
    ['no body', undefined, ['event']],
    ['a code of 101 characters', { event: 'failed', code: 'x'.repeat(101) }, ['code']],
    ['a reason of 501 characters', { event: 'failed', reason: 'x'.repeat(501) }, ['reason']],
    ['wrong types', { event: 1, code: 1.5, reason: [] }, ['event', 'code', 'reason']],
    ['an unknown field', { event: 'failed', status: 'failed' }, ['status']],
  ])('%s is refused and moves nothing', async (_, body, fields) => {
    const read = () => call(service.url, 'GET', `/v1/${resource}s/${id}`, { key });
    const before = await read();
    expectRefusal(await post(`/v1/sandbox/${resource}s/${id}/simulate`, body), 'invalid_request', [
      ...fields,
    ]);
    expect((await read()).text).toBe(before.text);
  });

  test('what nobody has, or another account has, cannot be simulated', async () => {
    const code = `${resource}_not_found` as const;
    const other = await (resource === 'payment' ? createRefund() : create());
    for (const each of ['some-id', other.id]) {
      const path = `/v1/sandbox/${resource}s/${each}/simulate`;
      expectRefusal(await post(path, { event: 'failed' }), code);
    }
    const path = `/v1/sandbox/${resource}s/${id}/simulate`;
    const body = { event: 'failed' };
    const { account_id, key: foreignKey } = await service.account();
    expectRefusal(await call(service.url, 'POST', path, { key: foreignKey, body }), code);
    const live = await openKey(service.stores, account_id, true);
    const answer = await call(service.url, 'POST', path, { key: live, body });
    expectRefusal(answer, 'api_key_scope_insufficient');
  });
});

test('the redirect URL opens the hosted page, and every read returns the same one', async () => {
  const { id, redirect_url } = await create();
  const page = await fetch(redirect_url);
  expect(page.status).toBe(200);
  expect(page.headers.get('Content-Type')).toContain('text/html');
  const read = await call(service.url, 'GET', `/v1/payments/${id}`, { key });
  expect(read.body.redirect_url).toBe(redirect_url);
  const token = redirect_url.split('/').at(-1);
  const rows = await service.collection('payments').find().toArray();
  expect(JSON.stringify(rows)).not.toContain(token);
});
