import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { createEncrypter } from '../../src/encryption/encrypter';
import { endpointOwner } from '../../src/store/endpoints';
import { call, eventually, settledPayment } from '../support/http';
import { type Service, startService } from '../support/service';
import { type Receiver, receiveHttp } from '../webhooks/receiver';
import { expectRefusal } from './refusal';

const Told = z.looseObject({ data: z.looseObject({ refund_id: z.string().optional() }) });

let service: Service;
let receiver: Receiver;
let account_id: string;
let key: string;
/** Events that the merchant's endpoint was told. */
const told: z.infer<typeof Told>[] = [];

beforeAll(async () => {
  receiver = await receiveHttp(async (request, response) => {
    told.push(Told.parse(await json(request)));
    response.writeHead(204).end();
  });
  service = await startService();
  ({ account_id, key } = await service.account());
  const owner = endpointOwner(account_id, false);
  const sealed = await createEncrypter(service.keys.seal).encrypt('whsec_any', owner);
  await service.stores.endpoints.set({
    account_id,
    livemode: false,
    url: receiver.url,
    sealed,
    now: new Date(),
  });
});
afterAll(async () => {
  await service?.stop();
  await receiver?.close();
});

const refund = async (payment_id: string, amount?: number) =>
  await call(service.url, 'POST', '/v1/refunds', { key, body: { payment_id, amount } });
const simulate = (id: string, body: object) =>
  call(service.url, 'POST', `/v1/sandbox/refunds/${id}/simulate`, { key, body });
const about = (id: string) => told.filter(({ data }) => data.refund_id === id);
/** Minor units on `main`. */
const available = async () => {
  const rows = await service.stores.ledger.balances(account_id, false);
  return rows.find(({ balance_account }) => balance_account === 'main')?.available;
};

test.each(['settled', 'failed'])('a refund that is %s tells the endpoint, once', async (event) => {
  const { id: payment_id } = await settledPayment(service, key);
  const { id } = (await refund(payment_id, 300)).body;
  const { body } = await simulate(id, { event });
  await simulate(id, { event });
  const [first] = await eventually('the event', async () => about(id).length > 0 && about(id));
  expect(first).toEqual({
    id: expect.stringMatching(/^evt_[0-9a-f]{8}-[0-9a-f-]{27}$/),
    type: `refund.${event}`,
    created: event === 'settled' ? body.settled_at : expect.any(String),
    livemode: false,
    data: { refund_id: id, payment_id },
  });
  const filter = { account_id, livemode: false, resource_id: id, limit: 5 };
  const events = await service.stores.events.list(filter);
  expect(events.map(({ type }) => type)).toEqual([`refund.${event}`]);
});

test('a settled refund has its time, and what was refunded stays refunded', async () => {
  const { id: payment_id } = await settledPayment(service, key);
  const created = (await refund(payment_id)).body;
  const before = await available();
  const { body } = await simulate(created.id, { event: 'settled' });
  expect(body).toEqual({ ...created, status: 'settled', settled_at: expect.any(String) });
  expect(body.settled_at >= created.created_at).toBe(true);
  expectRefusal(await refund(payment_id, 1), 'refund_amount_exceeds_balance');
  expect(await available()).toBe(before);
});

test('a failed refund says why, gives its amount back, and can be made again', async () => {
  const { id: payment_id } = await settledPayment(service, key);
  const before = await available();
  await refund(payment_id, 50);
  const created = (await refund(payment_id)).body;
  expect(created.amount).toBe(1_000);
  expect(await available()).toBe(Number(before) - 1_050);
  expectRefusal(await refund(payment_id, 1), 'refund_amount_exceeds_balance');
  const failure = { code: 'account_closed', message: 'The account is closed.' };
  const { body } = await simulate(created.id, {
    event: 'failed',
    code: failure.code,
    reason: failure.message,
  });
  expect(body).toEqual({ ...created, status: 'failed', failure });
  expect(await available()).toBe(Number(before) - 50);
  const again = await refund(payment_id);
  expect(again.body).toMatchObject({ status: 'processing', amount: 1_000, failure: null });
  expect((await simulate(again.body.id, { event: 'settled' })).body.status).toBe('settled');
  expectRefusal(await refund(payment_id), 'refund_amount_exceeds_balance');
  expect(await available()).toBe(Number(before) - 1_050);
});

test('a refund that failed comes back once, however often the bank says so', async () => {
  const { id: payment_id } = await settledPayment(service, key);
  const { id } = (await refund(payment_id)).body;
  for (let i = 0; i < 3; i += 1) await simulate(id, { event: 'failed' });
  expect((await service.stores.payments.get(payment_id))?.refunded).toBe(0);
  expectRefusal(await refund(payment_id, 1_051), 'refund_amount_exceeds_balance');
});
