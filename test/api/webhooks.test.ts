import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import Stripe from 'stripe';
import type { EventType } from '../../src/domain/webhook/event';
import { createEncrypter } from '../../src/encryption/encrypter';
import { makeSigningSecret } from '../../src/service/endpoints';
import { endpointOwner } from '../../src/store/endpoints';
import { assertWebhook } from '../support/contract';
import { call, eventually, idealPayment, settledPayment } from '../support/http';
import { type Service, startService } from '../support/service';
import { credit, insertRecipient } from './payout-setting';

interface Delivery {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

let service: Service;
let account_id: string;
let key: string;
const secret = makeSigningSecret();
const deliveries: Delivery[] = [];
/** The next answers of the receiver; 204 when there is none. */
const answers: number[] = [];
const receiver = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  deliveries.push({ headers: request.headers, body: Buffer.concat(chunks) });
  response.writeHead(answers.shift() ?? 204).end('thanks');
});

async function register(owner: string, enabled_events?: EventType[]): Promise<void> {
  const { port } = receiver.address() as AddressInfo;
  await service.stores.endpoints.set({
    account_id: owner,
    livemode: false,
    url: `http://localhost:${port}/webhooks`,
    sealed: await createEncrypter(service.keys.seal).encrypt(secret, endpointOwner(owner, false)),
    now: new Date(),
    enabled_events,
  });
}

beforeAll(async () => {
  service = await startService();
  ({ account_id, key } = await service.account());
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  await register(account_id);
});
afterAll(async () => {
  await service?.stop();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});
beforeEach(() => {
  deliveries.length = 0;
  answers.length = 0;
});

const pay = async () =>
  (await call(service.url, 'POST', '/v1/payments', { key, body: idealPayment() })).body;
const simulate = (id: string, event: string) =>
  call(service.url, 'POST', `/v1/sandbox/payments/${id}/simulate`, { key, body: { event } });
const about = (id: string) => deliveries.filter(({ body }) => body.includes(id));

test('each move reaches the endpoint, signed as the stripe library verifies it', async () => {
  const { id } = await pay();
  await simulate(id, 'authorized');
  await simulate(id, 'settled');
  await eventually('three deliveries', async () => about(id).length === 3);
  const { webhooks } = new Stripe('sk_test_none');
  const events = about(id).map(({ headers, body }) => {
    expect(headers['content-type']).toBe('application/json');
    const event: object = webhooks.constructEvent(body, `${headers['service-signature']}`, secret);
    expect(event).toMatchObject({ type: headers['service-event-type'] });
    return event;
  });
  expect(events.map((event) => 'type' in event && event.type).sort()).toEqual([
    'payment.authorized',
    'payment.awaiting_customer',
    'payment.settled',
  ]);
  for (const event of events) {
    expect(event).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-f]{8}-[0-9a-f-]{27}$/),
      type: expect.any(String),
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      livemode: false,
      data: { payment_id: id },
    });
  }
});

test('each event is what the OpenAPI document says of its type', async () => {
  const post = async (path: string, body: object) =>
    (await call(service.url, 'POST', path, { key, body })).body;
  const payment = await settledPayment(service, key);
  const refund = await post('/v1/refunds', { payment_id: payment.id });
  await post(`/v1/sandbox/refunds/${refund.id}/simulate`, { event: 'settled' });
  await credit(service, { account_id }, { amount: 10_000 });
  const recipient_id = await insertRecipient(service, { account_id }, 'sepa_instant');
  const money = { method: 'sepa_instant', amount: 1_000, currency: 'EUR' };
  const payout = await post('/v1/payouts', { recipient_id, ...money });
  await post(`/v1/sandbox/payouts/${payout.id}/simulate`, { event: 'completed' });
  const expected = [
    'payment.authorized',
    'payment.awaiting_customer',
    'payment.settled',
    'payout.completed',
    'payout.sent',
    'payout.submitted',
    'refund.settled',
  ];
  await eventually('every delivery', async () => deliveries.length === expected.length);
  const events = deliveries.map(({ body }) => JSON.parse(body.toString()));
  expect(events.map(({ type }) => type).toSorted()).toEqual(expected);
  for (const event of events) await assertWebhook(service.url, event.type, event);
  const settled = events.find(({ type }) => type === 'payment.settled');
  await expect(assertWebhook(service.url, 'refund.settled', settled)).rejects.toThrow('/data');
});

test('the event list tells of the delivery, and every attempt is kept', async () => {
  const { id } = await pay();
  const [event] = await eventually('delivered', async () => {
    const filter = { account_id, livemode: false, resource_id: id, limit: 10 };
    const rows = await service.stores.events.list(filter);
    return rows[0]?.delivery.status === 'delivered' && rows;
  });
  expect(event?.delivery).toMatchObject({ attempts: 1, next_attempt_at: null });
  const attempts = await service.stores.deliveries.forEvent(event?._id ?? '');
  expect(attempts).toMatchObject([
    {
      attempt: 1,
      status_code: 204,
      outcome: 'delivered',
      duration_ms: expect.any(Number),
    },
  ]);
});

test('an endpoint that answers 500 is told again later; payments do not wait for it', async () => {
  answers.push(500);
  const { id } = await pay();
  const event = await eventually('a failed attempt', async () => {
    const filter = { account_id, livemode: false, resource_id: id, limit: 10 };
    const [row] = await service.stores.events.list(filter);
    return row !== undefined && row.delivery.attempts === 1 && row;
  });
  expect(event.delivery.status).toBe('pending');
  const [attempt] = await service.stores.deliveries.forEvent(event._id);
  const wait = Date.parse(event.delivery.next_attempt_at ?? '') - Date.parse(attempt?.at ?? '');
  expect(wait).toBeGreaterThan(35_000);
  expect(wait).toBeLessThan(60_000);
  expect(attempt).toMatchObject({ status_code: 500, response_excerpt: 'thanks' });
  expect((await simulate(id, 'settled')).body.status).toBe('settled');
});

test('an endpoint that wants some events gets these; the others are recorded', async () => {
  const other = await service.account();
  await register(other.account_id, ['payment.settled']);
  const { id } = await settledPayment(service, other.key);
  const filter = { account_id: other.account_id, livemode: false, resource_id: id, limit: 10 };
  const rows = await eventually('the delivery', async () => {
    const found = await service.stores.events.list(filter);
    return found.some(({ delivery }) => delivery.status === 'delivered') && found;
  });
  expect(rows.map(({ type, delivery }) => [type, delivery.status, delivery.attempts])).toEqual([
    ['payment.settled', 'delivered', 1],
    ['payment.authorized', 'not_subscribed', 0],
    ['payment.awaiting_customer', 'not_subscribed', 0],
  ]);
  expect(about(id)).toHaveLength(1);
  const running = await service.temporal.workflow
    .getHandle(`webhook:${rows[1]?._id}`)
    .describe()
    .catch((error: Error) => error.name);
  expect(running).toBe('WorkflowNotFoundError');
});

test('an account without an endpoint has its events recorded all the same', async () => {
  const other = await service.account();
  const { body } = await call(service.url, 'POST', '/v1/payments', {
    key: other.key,
    body: idealPayment(),
  });
  const filter = { account_id: other.account_id, livemode: false, resource_id: body.id, limit: 5 };
  const [event] = await service.stores.events.list(filter);
  expect(event).toMatchObject({
    type: 'payment.awaiting_customer',
    delivery: { status: 'no_endpoint', attempts: 0 },
  });
  expect(about(body.id)).toHaveLength(0);
});
