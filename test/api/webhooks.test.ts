import Stripe from 'stripe';
import { assertWebhook } from '../support/contract';
import { useHook } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';
import { credit, insertRecipient } from './payout-setting';

const service = useService();
const shop = useAccount(service);
const hook = useHook(service);

beforeAll(() => hook.register(shop));

const pay = async () => (await shop.post('/v1/payments', idealPayment())).body;
const simulate = (id: string, event: string) =>
  shop.post(`/v1/sandbox/payments/${id}/simulate`, { event });
const listed = (id: string, { account_id }: { account_id: string } = shop) =>
  service.stores.events.list({ account_id, livemode: false, resource_id: id, limit: 10 });

test('each move reaches the endpoint, signed as the stripe library verifies it', async () => {
  const { id } = await pay();
  await simulate(id, 'authorized');
  await simulate(id, 'settled');
  await eventually('three deliveries', async () => hook.distinct(id).length === 3);
  const { webhooks } = new Stripe('sk_test_none');
  const events = hook.distinct(id).map(({ headers, body }) => {
    expect(headers['content-type']).toBe('application/json');
    const event: object = webhooks.constructEvent(
      body,
      `${headers['service-signature']}`,
      hook.secret,
    );
    expect(event).toMatchObject({ type: headers['service-event-type'] });
    return event;
  });
  expect(events.map((event) => 'type' in event && event.type).sort()).toEqual([
    'payment.authorized',
    'payment.awaiting_customer',
    'payment.settled',
  ]);
});

test('each event is what the OpenAPI document says of its type', async () => {
  const post = async (path: string, body: object) => (await shop.post(path, body)).body;
  const payment = await shop.settledPayment();
  const refund = await post('/v1/refunds', { payment_id: payment.id });
  await post(`/v1/sandbox/refunds/${refund.id}/simulate`, { event: 'settled' });
  await credit(service, shop, { amount: 10_000 });
  const recipient_id = await insertRecipient(service, shop, 'sepa_instant');
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
  // A refund names its payment as well.
  const told = () => [payment.id, payout.id].flatMap((id) => hook.distinct(id));
  await eventually('every delivery', async () => told().length === expected.length);
  const events = told().map(({ body }) => JSON.parse(body));
  expect(events.map(({ type }) => type).toSorted()).toEqual(expected);
  for (const event of events) await assertWebhook(service.url, event.type, event);
  const settled = events.find(({ type }) => type === 'payment.settled');
  await expect(assertWebhook(service.url, 'refund.settled', settled)).rejects.toThrow('/data');
});

test('the event list tells of the delivery, and every attempt is kept', async () => {
  const event = await eventually('one that is delivered at once', async () => {
    const { id } = await pay();
    const ended = await eventually('delivered', async () => {
      const [row] = await listed(id);
      return row?.delivery.status === 'delivered' && row;
    });
    // The endpoint may have been too slow on a busy machine.
    return ended.delivery.attempts === 1 && ended;
  });
  expect(event.delivery).toMatchObject({ attempts: 1, next_attempt_at: null });
  const attempts = await service.stores.deliveries.forEvent(event._id);
  expect(attempts).toMatchObject([
    { attempt: 1, status_code: 200, outcome: 'delivered', duration_ms: expect.any(Number) },
  ]);
});

test('an endpoint that answers 500 is told again later; payments do not wait for it', async () => {
  hook.answer.status = 500;
  const { id } = await pay();
  const event = await eventually('a failed attempt', async () => {
    const [row] = await listed(id);
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
  await hook.register(other, ['payment.settled']);
  const { id, rows } = await eventually('a delivery at the first attempt', async () => {
    const payment = await other.settledPayment();
    const found = await eventually('the delivery', async () => {
      const events = await listed(payment.id, other);
      return events.some(({ delivery }) => delivery.status === 'delivered') && events;
    });
    return found[0]?.delivery.attempts === 1 && { id: payment.id, rows: found };
  });
  expect(rows.map(({ type, delivery }) => [type, delivery.status, delivery.attempts])).toEqual([
    ['payment.settled', 'delivered', 1],
    ['payment.authorized', 'not_subscribed', 0],
    ['payment.awaiting_customer', 'not_subscribed', 0],
  ]);
  expect(hook.distinct(id)).toHaveLength(1);
  const running = await service.temporal.workflow
    .getHandle(`webhook:${rows[1]?._id}`)
    .describe()
    .catch((error: Error) => error.name);
  expect(running).toBe('WorkflowNotFoundError');
});

test('an account without an endpoint has its events recorded all the same', async () => {
  const other = await service.account();
  const { body } = await other.post('/v1/payments', idealPayment());
  const [event] = await listed(body.id, other);
  expect(event).toMatchObject({
    type: 'payment.awaiting_customer',
    delivery: { status: 'no_endpoint', attempts: 0 },
  });
  expect(hook.about(body.id)).toHaveLength(0);
});
