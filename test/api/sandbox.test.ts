import { call, idealPayment } from '../support/http';
import { type Service, startService } from '../support/service';
import { expectRefusal } from './refusal';

let service: Service;
let key: string;

beforeAll(async () => {
  service = await startService();
  ({ key } = await service.account());
});
afterAll(async () => service?.stop());

const post = (path: string, body?: unknown) => call(service.url, 'POST', path, { key, body });
const create = async () => (await post('/v1/payments', idealPayment())).body;
const simulate = (id: string, body: unknown) => post(`/v1/sandbox/payments/${id}/simulate`, body);

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

test.each([
  ['an event that is none', { event: 'paid' }, ['event']],
  ['an event of a payout', { event: 'returned' }, ['event']],
  ['no event', {}, ['event']],
  ['no body', undefined, ['event']],
  ['a code of 101 characters', { event: 'failed', code: 'x'.repeat(101) }, ['code']],
  ['a reason of 501 characters', { event: 'failed', reason: 'x'.repeat(501) }, ['reason']],
  ['wrong types', { event: 1, code: 1.5, reason: [] }, ['event', 'code', 'reason']],
  ['an unknown field', { event: 'failed', status: 'failed' }, ['status']],
])('%s is refused and moves nothing', async (_, body, fields) => {
  const { id } = await create();
  expectRefusal(await simulate(id, body), 'invalid_request', fields);
  expect((await service.stores.payments.get(id))?.version).toBe(2);
});

test('a payment that nobody has cannot be simulated', async () => {
  expectRefusal(await simulate('some-id', { event: 'settled' }), 'payment_not_found');
});

test('the redirect URL opens the hosted page, and every read returns the same one', async () => {
  const { id, redirect_url } = await create();
  const page = await fetch(redirect_url);
  expect(page.status).toBe(200);
  expect(page.headers.get('Content-Type')).toContain('text/html');
  const read = await call(service.url, 'GET', `/v1/payments/${id}`, { key });
  expect(read.body.redirect_url).toBe(redirect_url);
  const token = redirect_url.split('/').at(-1);
  const rows = await service.mongo.db(service.database).collection('payments').find().toArray();
  expect(JSON.stringify(rows)).not.toContain(token);
});
