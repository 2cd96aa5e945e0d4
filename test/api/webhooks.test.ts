import Stripe from 'stripe';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { findDeliveries, restart } from '../../src/service/orphans';
import { patientClient } from '../cli/resource-setting';
import { assertWebhook } from '../support/contract';
import {
  buildAccount,
  buildEndpoint,
  buildPayment,
  buildPayout,
  buildRefund,
} from '../support/factories';
import { openInbox, useHook, useInbox } from '../support/hook';
import { eventually } from '../support/http';
import { type Account, useService } from '../support/service';
import { sendClock } from './clock-setting';

const PATH = '/v1/webhook-endpoints';
const OPENED = 'payment.awaiting_customer';

const service = useService();
const inbox = useInbox();

interface Delivery {
  endpoint_id: string;
  status: string;
  attempts: number;
}

const simulate = (shop: Account, id: string, event: string) =>
  shop.post(`/v1/sandbox/payments/${id}/simulate`, { event });
const patch = async (shop: Account, id: string, body: object) =>
  (await shop.send('PATCH', `${PATH}/${id}`, body)).body;
const findEvent = async (shop: Account, id: string, type = OPENED) =>
  (await shop.get(`/v1/events?resource_id=${id}&type=${type}`)).body.data[0];
const listDeliveries = async (shop: Account, id: string, type = OPENED): Promise<Delivery[]> =>
  (await findEvent(shop, id, type))?.deliveries ?? [];
const listStored = (id: string, { account_id }: Account) =>
  service.stores.events.list({ account_id, livemode: false, resource_id: id, limit: 10 });

async function expectDeliveries(
  shop: Account,
  id: string,
  type: string,
  expected: [endpoint: string, status: string][],
): Promise<void> {
  let seen: unknown;
  await eventually(`the deliveries of ${type}`, async () => {
    seen = (await listDeliveries(shop, id, type)).map((each) => [each.endpoint_id, each.status]);
    return JSON.stringify(seen) === JSON.stringify(expected);
  }).catch(() => undefined);
  expect(seen).toEqual(expected);
}

describe('an endpoint', () => {
  const hook = useHook(service);
  let shop: Account;
  beforeEach(async () => {
    shop = await service.account();
  });

  test('gets each event of a payment, signed as the stripe library verifies it', async () => {
    await hook.register(shop);
    const { id } = await buildPayment(shop);
    await simulate(shop, id, 'authorized');
    await simulate(shop, id, 'settled');
    await eventually('three deliveries', async () => hook.distinct(id).length === 3);
    const { webhooks } = new Stripe('sk_test_none');
    const types = hook.distinct(id).map(({ headers, body }) => {
      const { 'service-signature': signature, 'service-event-type': type } = headers;
      expect(headers['content-type']).toBe('application/json');
      const event: object = webhooks.constructEvent(body, `${signature}`, hook.secret);
      expect(event).toMatchObject({ type });
      return type;
    });
    expect(types.sort()).toEqual(['payment.authorized', OPENED, 'payment.settled']);
  });

  test('gets events that are as the OpenAPI document describes their types', async () => {
    const funded = await buildAccount(service, { funds: 10_000 });
    await hook.register(funded);
    const { payment_id } = await buildRefund(funded, { status: 'settled' });
    const { id } = await buildPayout(funded, { status: 'completed' });
    const expected = [
      ...['payment.authorized', OPENED, 'payment.settled'],
      ...['payout.completed', 'payout.sent', 'payout.submitted', 'refund.settled'],
    ];
    // The event of a refund names its payment as well.
    const listEvents = () => [payment_id, id].flatMap(hook.events);
    await eventually('every event', async () => listEvents().length >= expected.length);
    const events = listEvents();
    expect([...new Set(events.map(({ type }) => type))].sort()).toEqual(expected);
    for (const event of events) await assertWebhook(service.url, event.type, event);
    const settled = events.find(({ type }) => type === 'payment.settled');
    await expect(assertWebhook(service.url, 'refund.settled', settled)).rejects.toThrow('/data');
  });

  test('that answers has its attempt stored, with the status', async () => {
    await hook.register(shop);
    const event = await eventually('an event that is delivered at once', async () => {
      const { id } = await buildPayment(shop);
      const delivered = await eventually('delivered', async () => {
        const [row] = await listStored(id, shop);
        return row?.delivery.status === 'delivered' && row;
      });
      // The endpoint may have been too slow on a busy machine.
      return delivered.delivery.attempts === 1 && delivered;
    });
    expect(event.delivery).toMatchObject({ attempts: 1, next_attempt_at: null });
    expect(await service.stores.deliveries.forEvent(event._id)).toMatchObject([
      { attempt: 1, status_code: 200, outcome: 'delivered', duration_ms: expect.any(Number) },
    ]);
  });

  test('that answers 500 is attempted again later, and payments do not wait for it', async () => {
    await hook.register(shop);
    hook.answer.status = 500;
    const { id } = await buildPayment(shop);
    const event = await eventually('a failed attempt', async () => {
      const [row] = await listStored(id, shop);
      return row?.delivery.attempts === 1 && row;
    });
    expect(event.delivery.status).toBe('pending');
    const [attempt] = await service.stores.deliveries.forEvent(event._id);
    const wait = Date.parse(event.delivery.next_attempt_at ?? '') - Date.parse(attempt?.at ?? '');
    expect(wait).toBeGreaterThan(35_000);
    expect(wait).toBeLessThan(60_000);
    expect(attempt).toMatchObject({ status_code: 500, response_excerpt: 'thanks' });
    expect((await simulate(shop, id, 'settled')).body.status).toBe('settled');
  });

  test('gets only the events that it is enabled for, and other events have no workflow', async () => {
    await hook.register(shop, ['payment.settled']);
    const { id } = await buildPayment(shop, { status: 'settled' });
    const rows = await eventually('the delivery', async () => {
      const events = await listStored(id, shop);
      return events[0]?.delivery.status === 'delivered' && events;
    });
    expect(rows.map(({ type, delivery }) => [type, delivery.status])).toEqual([
      ['payment.settled', 'delivered'],
      ['payment.authorized', 'not_subscribed'],
      [OPENED, 'not_subscribed'],
    ]);
    expect(rows.slice(1).map(({ delivery }) => delivery.attempts)).toEqual([0, 0]);
    expect(hook.distinct(id)).toHaveLength(1);
    const handle = service.temporal.workflow.getHandle(webhookWorkflowId(rows[1]?._id ?? ''));
    await expect(handle.describe()).rejects.toMatchObject({ name: 'WorkflowNotFoundError' });
  });

  test('is not needed for an event to be recorded', async () => {
    const { id } = await buildPayment(shop);
    const [event] = await listStored(id, shop);
    const delivery = { status: 'no_endpoint', attempts: 0 };
    expect(event).toMatchObject({ type: OPENED, delivery });
  });
});

test('each of several endpoints gets its events until it is disabled or deleted', async () => {
  const shop = await service.account();
  const build = (name: string, fields = {}) =>
    buildEndpoint(shop, { url: `${inbox.url}/${name}`, ...fields });
  const first = await build('1');
  const second = await build('2', { enabled_events: ['payment.settled'] });
  const disabled = await build('3');
  const deleted = await build('4');
  await patch(shop, disabled.id, { status: 'disabled' });
  const { id: before } = await buildPayment(shop, { status: 'settled' });
  await expectDeliveries(shop, before, 'payment.settled', [
    [first.id, 'delivered'],
    [second.id, 'delivered'],
    [disabled.id, 'disabled'],
    [deleted.id, 'delivered'],
  ]);
  await expectDeliveries(shop, before, 'payment.authorized', [
    [first.id, 'delivered'],
    [second.id, 'not_subscribed'],
    [disabled.id, 'disabled'],
    [deleted.id, 'delivered'],
  ]);
  await shop.delete(`${PATH}/${deleted.id}`);
  await shop.delete(`${PATH}/${first.id}`);
  await patch(shop, disabled.id, { status: 'enabled' });
  const { id: after } = await buildPayment(shop, { status: 'settled' });
  await expectDeliveries(shop, after, 'payment.settled', [
    [second.id, 'delivered'],
    [disabled.id, 'delivered'],
  ]);
  // The deliveries to a deleted endpoint stay.
  const [row] = await listDeliveries(shop, before, 'payment.settled');
  expect(row).toMatchObject({ endpoint_id: first.id, status: 'delivered', attempts: 1 });
  const signatures = new Set(inbox.received.map(({ headers }) => headers['service-signature']));
  expect(signatures.size).toBe(inbox.received.length);
});

test('an endpoint that hangs does not delay another', async () => {
  const shop = await service.account();
  const slow = await openInbox();
  try {
    slow.answer.hold = new Promise(() => undefined);
    const hanging = await buildEndpoint(shop, { url: slow.url });
    const good = await buildEndpoint(shop, { url: inbox.url });
    const { id } = await buildPayment(shop);
    await expectDeliveries(shop, id, OPENED, [
      [hanging.id, 'pending'],
      [good.id, 'delivered'],
    ]);
    // What waits for a disabled endpoint ends at its next attempt; a redelivery needs it enabled.
    await patch(shop, hanging.id, { status: 'disabled' });
    const path = `/v1/events/${(await findEvent(shop, id)).id}/redeliver`;
    expect((await shop.post(path, undefined, { idempotencyKey: null })).status).toBe(202);
    await eventually('the second delivery', async () => {
      return (await listDeliveries(shop, id))[1]?.attempts === 2;
    });
  } finally {
    await slow.close();
  }
});

test('a delivery that has lost its workflow is found and restarted', async () => {
  const shop = await service.account();
  // To the end: a second attempt that comes due on a busy machine must not end a delivery.
  inbox.answer.status = 500;
  const first = await buildEndpoint(shop, { url: `${inbox.url}/1` });
  const second = await buildEndpoint(shop, { url: `${inbox.url}/2` });
  const { id } = await buildPayment(shop);
  await eventually('both first attempts', async () => {
    const rows = await listDeliveries(shop, id);
    return rows.length === 2 && rows.every(({ attempts }) => attempts === 1);
  });
  const event = await findEvent(shop, id);
  const names = [event.id, `${event.id}:${second.id}`];
  const handles = names.map((name) => service.temporal.workflow.getHandle(webhookWorkflowId(name)));
  for (const handle of handles) await handle.terminate('lost');
  const { stores, queues } = service;
  const deps = {
    ...{ stores, lifecycleQueue: queues.lifecycle, webhookQueue: queues.webhooks },
    temporal: patientClient(service.temporal),
    now: () => new Date(Date.now() + 600_000),
  };
  const found: string[] = [];
  for await (const { orphans } of findDeliveries(deps)) {
    for (const orphan of orphans.filter((each) => each.event.account_id === shop.account_id)) {
      found.push(orphan.event._id);
      await restart(deps, orphan);
    }
  }
  expect(found.sort()).toEqual(names);
  for (const handle of handles) {
    expect((await handle.describe()).status.name).toBe('RUNNING');
    await handle.terminate('end of test');
  }
  const endpoints = (await listDeliveries(shop, id)).map((each) => each.endpoint_id);
  expect(endpoints).toEqual([first.id, second.id]);
});

describe('an endpoint that fails', () => {
  const advance = (shop: Account, by: string) => sendClock(shop, { advance: by });

  /** Sends an event, and waits until it was attempted. */
  async function attempt(shop: Account): Promise<void> {
    const { id } = await buildPayment(shop);
    await eventually('an attempt', async () => {
      return ((await listDeliveries(shop, id))[0]?.attempts ?? 0) >= 1;
    });
  }

  /** Opens an account with an endpoint to which an event was attempted twice. */
  async function openFailing() {
    const shop = await service.account();
    const { id } = await buildEndpoint(shop, { url: inbox.url });
    inbox.answer.status = 500;
    await attempt(shop);
    const read = async () => (await shop.get(`${PATH}/${id}`)).body;
    const readFailingSince = async () =>
      (await service.stores.endpoints.get(shop.account_id, false))?.failing_since;
    expect(await readFailingSince()).toBeUndefined();
    await advance(shop, 'PT1M');
    await eventually('the second attempt', readFailingSince);
    return { shop, id, read, readFailingSince };
  }

  test('for five days is disabled, and the merchant can enable it again', async () => {
    const { shop, id, read, readFailingSince } = await openFailing();
    await advance(shop, 'P4D');
    await attempt(shop);
    expect((await read()).status).toBe('enabled');
    await advance(shop, 'P1D');
    await attempt(shop);
    await eventually('it is disabled', async () => (await read()).status === 'disabled');
    expect(await read()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
    const { account_id } = shop;
    const log = service.collection('audit_log').find({ account_id, act: 'webhook.disabled' });
    expect(await log.toArray()).toMatchObject([{ target: id, actor: { door: 'service' } }]);
    inbox.answer.status = 200;
    await patch(shop, id, { status: 'enabled' });
    expect(await read()).toMatchObject({ status: 'enabled', disabled_reason: null });
    expect(await readFailingSince()).toBeUndefined();
    await attempt(shop);
  });

  test('stays enabled when one attempt succeeds within the five days', async () => {
    const { shop, read, readFailingSince } = await openFailing();
    await advance(shop, 'P4D');
    inbox.answer.status = 200;
    await attempt(shop);
    await eventually('the success', async () => (await readFailingSince()) === undefined);
    inbox.answer.status = 500;
    await advance(shop, 'P2D');
    await attempt(shop);
    expect((await read()).status).toBe('enabled');
  });
});
