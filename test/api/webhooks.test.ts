import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { EVENT_TYPES, webhookWorkflowId } from '../../src/domain/webhook/event';
import {
  type DeliveryOrphan,
  findDeliveries,
  restart,
} from '../../src/service/operators/reconcile/orphans';
import { patientClient } from '../cli/resource-setting';
import { buildEndpoint, buildPayment } from '../support/factories';
import { useInbox } from '../support/hook';
import { eventually } from '../support/http';
import { type Account, useService } from '../support/service';
import { DAY_MS, sendClock } from './clock-setting';
import { ids } from './pages';
import { expectRefusal } from './refusal';

const PATH = '/v1/webhook-endpoints';
const UNKNOWN = 'we_00000000-0000-4000-8000-000000000000';
const OPENED = 'payment.awaiting_customer';

const service = useService();
const inbox = useInbox();

interface Delivery {
  endpoint_id: string;
  status: string;
  attempts: number;
}

const build = (shop: Account, fields: object = {}) =>
  buildEndpoint(shop, { url: inbox.url, ...fields });
const patch = (shop: Account, id: string, body: object) =>
  shop.send('PATCH', `${PATH}/${id}`, body);
/** Posts without an idempotency key. */
const act = (shop: Account, path: string, body?: object) =>
  shop.post(path, body, { idempotencyKey: null });
const findEvent = async (shop: Account, id: string, type = OPENED) =>
  (await shop.get(`/v1/events?resource_id=${id}&type=${type}`)).body.data[0];
const listDeliveries = async (shop: Account, id: string, type = OPENED): Promise<Delivery[]> =>
  (await findEvent(shop, id, type))?.deliveries ?? [];

/** Expects deliveries of an event, each of an endpoint, in any order, with a status and attempts. */
async function expectDeliveries(
  shop: Account,
  id: string,
  type: string,
  expected: [endpoint: string, status: string, attempts: number][],
): Promise<void> {
  const wanted = expected.toSorted();
  let seen: unknown;
  await eventually(`the deliveries of ${type}`, async () => {
    const rows = await listDeliveries(shop, id, type);
    seen = rows.map((row) => [row.endpoint_id, row.status, row.attempts]).toSorted();
    return isDeepStrictEqual(seen, wanted);
  }).catch(() => undefined);
  expect(seen).toEqual(wanted);
}

describe('an endpoint', () => {
  test('is created, read, changed and deleted, and shows its secret once', async () => {
    const shop = await service.account();
    const created = await build(shop, { description: 'Orders' });
    const { signing_secret, ...shown } = created;
    expect(signing_secret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/);
    expect(shown).toEqual({
      id: expect.stringMatching(/^we_[0-9a-f-]{36}$/),
      object: 'webhook_endpoint',
      url: new URL(inbox.url).href,
      description: 'Orders',
      enabled_events: [...EVENT_TYPES],
      status: 'enabled',
      disabled_reason: null,
      livemode: false,
      created_at: expect.any(String),
      updated_at: created.created_at,
    });
    const path = `${PATH}/${created.id}`;
    expect((await shop.get(path)).body).toEqual(shown);
    const page = { object: 'list', data: [shown], has_more: false, next_cursor: null };
    expect((await shop.get(PATH)).body).toEqual(page);

    const changes = { description: null, enabled_events: ['payout.sent', 'payment.settled'] };
    const changed = await patch(shop, created.id, { ...changes, status: 'disabled' });
    expect([changed.status, changed.body]).toEqual([
      200,
      {
        ...{ ...shown, ...changes, status: 'disabled', disabled_reason: 'merchant' },
        updated_at: expect.any(String),
      },
    ]);
    expect(changed.body.updated_at > shown.updated_at).toBe(true);
    const enabled = { ...changes, status: 'enabled', disabled_reason: null };
    expect((await patch(shop, created.id, { status: 'enabled' })).body).toMatchObject(enabled);

    const deleted = await shop.delete(path);
    expect([deleted.status, deleted.body]).toMatchObject([200, { id: created.id, deleted: true }]);
    for (const answer of [
      await shop.get(path),
      await shop.delete(path),
      await patch(shop, created.id, {}),
      await act(shop, `${path}/roll-secret`),
      await act(shop, `${path}/test`, { type: 'payout.sent' }),
    ]) {
      expectRefusal(answer, 'webhook_endpoint_not_found');
    }
  });

  // Addresses that no URL may have: test/webhooks/address.test.ts
  test.each([
    ['url', { url: 'https://10.0.0.1/hook' }],
    ['url', { url: null }],
    ['enabled_events', { enabled_events: [] }],
    ['enabled_events.0', { enabled_events: ['payment.lost'] }],
    ['description', { description: 'x'.repeat(256) }],
    ['secret', { secret: 'own' }],
  ])('is refused with a wrong %s: %j', async (field, body) => {
    const shop = await service.account();
    const { id } = await build(shop);
    const created = await shop.post(PATH, { url: inbox.url, ...body });
    expectRefusal(created, 'invalid_request', [field]);
    expectRefusal(await patch(shop, id, body), 'invalid_request', [field]);
  });

  test('is one of 16 at most in its environment, also when many are created at once', async () => {
    const shop = await service.account();
    const post = (idempotencyKey = randomUUID()) =>
      shop.post(PATH, { url: inbox.url }, { idempotencyKey });
    const answers = await Promise.all(Array.from({ length: 19 }, () => post()));
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused).toHaveLength(3);
    for (const answer of refused) expectRefusal(answer, 'endpoint_limit_reached');
    const key = randomUUID();
    expectRefusal(await post(key), 'endpoint_limit_reached');
    await shop.delete(`${PATH}/${answers.find(({ status }) => status === 201)?.body.id}`);
    // A refusal does not use up the key.
    expect((await post(key)).status).toBe(201);
    expect((await (await service.withKey(shop, true)).get(PATH)).body.data).toEqual([]);
  });

  test('gets a test event once, alone, which has a delivery', async () => {
    const shop = await service.account();
    const [{ id }] = await Promise.all([build(shop), build(shop)]);
    inbox.answer.status = 500;
    const sendTest = () => act(shop, `${PATH}/${id}/test`, { type: 'refund.settled' });
    const { status, body } = await sendTest();
    expect([status, body]).toMatchObject([
      202,
      {
        ...{ object: 'event', type: 'refund.settled', data: { test: true } },
        deliveries: [{ endpoint_id: id, status: 'pending', attempts: 0 }],
      },
    ]);
    const deliveries = await eventually('the end of the test', async () => {
      const event = (await shop.get(`/v1/events/${body.id}`)).body;
      return event.deliveries[0].status === 'exhausted' && event.deliveries;
    });
    expect(deliveries).toMatchObject([{ endpoint_id: id, attempts: 1, log: [{ status: 500 }] }]);
    expect(inbox.received).toHaveLength(1);
    await patch(shop, id, { status: 'disabled' });
    expectRefusal(await sendTest(), 'endpoint_disabled');
  });

  test('that fails twice is failing until a success, and after five days disabled, until it is enabled', async () => {
    const shop = await service.account();
    const { account_id } = shop;
    const { id } = await build(shop);
    const read = async () => (await shop.get(`${PATH}/${id}`)).body;
    await failTwice(shop);
    await backdate(shop, 4.9);
    await attempt(shop, 500);
    expect((await read()).status).toBe('enabled');
    await backdate(shop, 5);
    await attempt(shop, 500);
    await eventually('it is disabled', async () => (await read()).status === 'disabled');
    expect(await read()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
    const log = service.collection('audit_log').find({ account_id, act: 'webhook.disabled' });
    expect(await log.toArray()).toMatchObject([{ target: id, actor: { via: 'service' } }]);
    await patch(shop, id, { status: 'enabled' });
    expect(await read()).toMatchObject({ status: 'enabled', disabled_reason: null });
    expect(await readFailing(shop)).toBeUndefined();
    await backdate(shop, 1);
    await attempt(shop, 200);
    await eventually('the success', async () => (await readFailing(shop)) === undefined);
  });

  const readFailing = async ({ account_id }: Account) =>
    (await service.stores.endpoints.get(account_id, false))?.failing_since;

  /** Sends an event, and waits until it was attempted. */
  async function attempt(shop: Account, status: number): Promise<void> {
    inbox.answer.status = status;
    const { id } = await buildPayment(shop);
    await eventually('an attempt', async () => {
      return ((await listDeliveries(shop, id))[0]?.attempts ?? 0) >= 1;
    });
  }

  async function failTwice(shop: Account): Promise<void> {
    await attempt(shop, 500);
    expect(await readFailing(shop)).toBeUndefined();
    await sendClock(shop, { advance: 'PT1M' });
    await eventually('the second attempt', () => readFailing(shop));
  }

  /** Lets an endpoint have failed for some days. */
  async function backdate({ account_id }: Account, days: number): Promise<void> {
    const failing_since = new Date(Date.now() - days * DAY_MS).toISOString();
    const { modifiedCount } = await service
      .collection('webhook_endpoints')
      .updateOne({ account_id }, { $set: { failing_since } });
    expect(modifiedCount).toBe(1);
  }
});

test('events go to each endpoint that is enabled for them until it is disabled or deleted', async () => {
  const shop = await service.account();
  const named = (name: string, fields = {}) =>
    build(shop, { url: `${inbox.url}/${name}`, ...fields });
  // Created at once, since each waits until the caches of all processes know it.
  const [first, second, disabled] = await Promise.all([
    ...([named('1'), named('2', { enabled_events: ['payment.settled'] }), named('3')] as const),
  ]);
  await patch(shop, disabled.id, { status: 'disabled' });
  const { id: before } = await buildPayment(shop, { status: 'settled' });
  const expectBefore = (type: string, ofSecond: [status: string, attempts: number]) =>
    expectDeliveries(shop, before, type, [
      [first.id, 'delivered', 1],
      [second.id, ...ofSecond],
      [disabled.id, 'disabled', 0],
    ]);
  await expectBefore('payment.settled', ['delivered', 1]);
  await expectBefore('payment.authorized', ['not_subscribed', 0]);
  await shop.delete(`${PATH}/${first.id}`);
  await patch(shop, disabled.id, { status: 'enabled' });
  const { id: after } = await buildPayment(shop, { status: 'settled' });
  await expectDeliveries(shop, after, 'payment.settled', [
    [second.id, 'delivered', 1],
    [disabled.id, 'delivered', 1],
  ]);
  // The deliveries to a deleted endpoint stay.
  await expectBefore('payment.settled', ['delivered', 1]);
  const signatures = new Set(inbox.received.map(({ headers }) => headers['service-signature']));
  expect(signatures.size).toBe(inbox.received.length);
});

test('events that no endpoint gets are recorded without a workflow', async () => {
  const shop = await service.account();
  const { id: without } = await buildPayment(shop);
  await build(shop, { enabled_events: ['payment.settled'] });
  const { id: filtered } = await buildPayment(shop);
  for (const { resource_id, deliveries } of [
    { resource_id: without, deliveries: [] },
    { resource_id: filtered, deliveries: [{ status: 'not_subscribed', attempts: 0 }] },
  ]) {
    const owner = { account_id: shop.account_id, livemode: false };
    const rows = await service.stores.events.list({ ...owner, resource_id, limit: 10 });
    expect(rows).toMatchObject([{ type: OPENED }]);
    expect(await service.stores.deliveries.forEvents(rows.map(({ _id }) => _id))).toMatchObject(
      deliveries,
    );
    const handle = service.temporal.workflow.getHandle(webhookWorkflowId(rows[0]?._id ?? ''));
    await expect(handle.describe()).rejects.toMatchObject({ name: 'WorkflowNotFoundError' });
  }
  // Endpoints of other tests may still get theirs.
  const about = inbox.received.filter(
    ({ body }) => body.includes(without) || body.includes(filtered),
  );
  expect(about).toEqual([]);
});

test('a redelivery sends an event to one endpoint, or to all that are enabled for it', async () => {
  const shop = await service.account();
  const first = await build(shop, { url: `${inbox.url}/1` });
  const second = await build(shop, { url: `${inbox.url}/2`, enabled_events: ['payout.sent'] });
  const { id } = await buildPayment(shop, { status: 'settled' });
  const event = await findEvent(shop, id, 'payment.settled');
  const path = `/v1/events/${event.id}/redeliver`;
  const redeliver = (endpoint_id: string) => act(shop, path, { endpoint_id });
  const untilDeliveries = (...expected: [endpoint: string, status: string, attempts: number][]) =>
    expectDeliveries(shop, id, 'payment.settled', expected);
  await untilDeliveries([first.id, 'delivered', 1], [second.id, 'not_subscribed', 0]);
  const all = await act(shop, path);
  expect([all.status, all.body.id]).toEqual([202, event.id]);
  await untilDeliveries([first.id, 'delivered', 2], [second.id, 'not_subscribed', 0]);
  expect((await redeliver(second.id)).status).toBe(202);
  await untilDeliveries([first.id, 'delivered', 2], [second.id, 'delivered', 1]);
  await patch(shop, first.id, { status: 'disabled' });
  expectRefusal(await redeliver(first.id), 'endpoint_disabled');
  expectRefusal(await redeliver(UNKNOWN), 'webhook_endpoint_not_found');
  expectRefusal(await act(shop, '/v1/events/evt_unknown/redeliver'), 'event_not_found');
  expect(ids((await shop.get(PATH)).body.data)).toEqual([second.id, first.id]);
});

// Search for such deliveries: test/cli/reconcile.test.ts
test('the restart of a delivery that has lost its workflow continues all deliveries of its event', async () => {
  const shop = await service.account();
  // A second attempt that comes due on a busy machine must not end a delivery.
  inbox.answer.status = 500;
  const endpoints = await Promise.all([build(shop), build(shop)]);
  const { id } = await buildPayment(shop);
  const failed = endpoints.map((endpoint): [string, string, number] => [endpoint.id, 'pending', 1]);
  await expectDeliveries(shop, id, OPENED, failed);
  const { stores, queues, temporal } = service;
  const event = await findEvent(shop, id);
  const handle = temporal.workflow.getHandle(webhookWorkflowId(event.id));
  await handle.terminate('lost');
  const deps = {
    ...{ stores, lifecycleQueue: queues.lifecycle, webhookQueue: queues.webhooks },
    ...{ temporal: patientClient(temporal), now: () => new Date(Date.now() + 600_000) },
  };
  const found: DeliveryOrphan[] = [];
  for await (const { orphans } of findDeliveries(deps, [event.id])) found.push(...orphans);
  expect(found).toHaveLength(2);
  for (const orphan of found.slice(0, 1)) await restart(deps, orphan);
  await eventually('both activities', async () => {
    return (await handle.describe()).raw.pendingActivities?.length === 2;
  });
  await handle.terminate('end of test');
});
