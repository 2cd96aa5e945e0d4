import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ClientSession } from 'mongodb';
import { buildEvents } from '../../activities/shared/events';
import { DEFAULT_EVENT_TYPES, webhookWorkflowId } from '../../src/domain/events/event';
import { createRedeliveries } from '../../src/service/events/redeliveries';
import { eventually } from '../support/eventually';
import { buildEndpoint, buildPayment, buildRefund } from '../support/factories';
import { gate } from '../support/gate';
import { useInbox } from '../support/hook';
import { createClient } from '../support/http';
import { type Account, useService } from '../support/service';
import { writeOnce } from '../support/write-once';
import { DAY_MS, sendClock } from './clock-setting';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const service = useService();

const PATH = '/v1/webhook-endpoints';
const UNKNOWN = 'we_00000000-0000-4000-8000-000000000000';
const OPENED = 'payment.awaiting_customer';
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
  test('is created, read, changed and deleted, shows its secret once, and leaves what looks like one out of the audit log', async () => {
    const shop = await service.account();
    const { account_id } = shop;
    const url = `${new URL(inbox.url).href}?k=whsec_`;
    const created = await build(shop, { description: 'Orders', url });
    const { signing_secret, ...shown } = created;
    expect(signing_secret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/);
    expect(shown).toEqual({
      id: expect.stringMatching(/^we_[0-9a-f-]{36}$/),
      object: 'webhook_endpoint',
      url,
      description: 'Orders',
      enabled_events: [...DEFAULT_EVENT_TYPES],
      status: 'enabled',
      disabled_reason: null,
      livemode: false,
      created_at: expect.any(String),
      updated_at: created.created_at,
    });
    const path = `${PATH}/${created.id}`;
    expect((await shop.get(path)).body).toEqual(shown);
    expect((await shop.get(PATH)).body.data).toEqual([shown]);
    const changes = {
      ...{ description: null, url: `${url}2` },
      enabled_events: ['payout.sent', 'payment.settled'],
    };
    const { status, body } = await patch(shop, created.id, { ...changes, status: 'disabled' });
    const disabled = { ...shown, ...changes, status: 'disabled', disabled_reason: 'merchant' };
    expect([status, body]).toEqual([200, { ...disabled, updated_at: body.updated_at }]);
    expect(body.updated_at > shown.updated_at).toBe(true);
    const enabled = { ...changes, status: 'enabled', disabled_reason: null };
    expect((await patch(shop, created.id, { status: 'enabled' })).body).toMatchObject(enabled);
    const lines = await service.stores.auditLog.list({ account_id, limit: 3 });
    const omitted = { url: 'omitted: it looks like a secret' };
    expect(lines.map(({ act: what, after }) => [what, after])).toMatchObject([
      ['webhook.updated', {}],
      ['webhook.updated', omitted],
      ['webhook.created', omitted],
    ]);
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
    const event = { object: 'event', type: 'refund.settled', data: { test: true } };
    const pending = { endpoint_id: id, status: 'pending', attempts: 0 };
    expect([status, body]).toMatchObject([202, { ...event, deliveries: [pending] }]);
    const ended = await eventually('the end of the test', async () => {
      const [delivery] = (await shop.get(`/v1/events/${body.id}`)).body.deliveries;
      return delivery.status === 'exhausted' && delivery;
    });
    expect(ended).toMatchObject({ endpoint_id: id, attempts: 1, log: [{ status: 500 }] });
    expect(inbox.received).toHaveLength(1);
    await patch(shop, id, { status: 'disabled' });
    expectRefusal(await sendTest(), 'endpoint_disabled');
  });

  // When a success counts: test/store/stores.test.ts
  test('that fails twice is failing until a success, and after five days disabled, until it is enabled', async () => {
    const shop = await service.account();
    const { account_id } = shop;
    const { id } = await build(shop);
    const read = async () => (await shop.get(`${PATH}/${id}`)).body;
    const readFailing = async () =>
      (await service.stores.endpoints.get(account_id, false))?.failing_since;
    /** Sends an event, and waits until it was attempted. */
    const attempt = async (status: number) => {
      inbox.answer.status = status;
      const { id: payment } = await buildPayment(shop);
      await eventually('an attempt', async () => {
        return ((await listDeliveries(shop, payment))[0]?.attempts ?? 0) >= 1;
      });
    };
    const backdate = (days: number) => {
      const failing_since = new Date(Date.now() - days * DAY_MS).toISOString();
      const endpoints = service.collection('webhook_endpoints');
      return endpoints.updateOne({ account_id }, { $set: { failing_since } });
    };
    await attempt(500);
    expect(await readFailing()).toBeUndefined();
    await sendClock(shop, { advance: 'PT1M' });
    await eventually('the second attempt', readFailing);
    await backdate(4.9);
    await attempt(500);
    expect((await read()).status).toBe('enabled');
    await backdate(5);
    await attempt(500);
    await eventually('it is disabled', async () => (await read()).status === 'disabled');
    expect(await read()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' });
    const log = service.collection('audit_log').find({ account_id, act: 'webhook.disabled' });
    expect(await log.toArray()).toMatchObject([{ target: id, actor: { via: 'service' } }]);
    await patch(shop, id, { status: 'enabled' });
    expect(await read()).toMatchObject({ status: 'enabled', disabled_reason: null });
    expect(await readFailing()).toBeUndefined();
    await backdate(1);
    await attempt(200);
    await eventually('the success', async () => (await readFailing()) === undefined);
  });
});

// Deliveries to several endpoints: test/workflows/webhook/delivery.test.ts
test('events go to each endpoint that is enabled for them, and a redelivery to one or to all of these', async () => {
  const shop = await service.account();
  const named = (name: string, fields = {}) =>
    build(shop, { url: `${inbox.url}/${name}`, ...fields });
  // Created at once, since each waits until the caches of all processes know it.
  const [first, second, third] = await Promise.all([
    ...([named('1'), named('2', { enabled_events: ['payout.sent'] }), named('3')] as const),
  ]);
  await patch(shop, third.id, { status: 'disabled' });
  const { id } = await buildPayment(shop, { status: 'settled' });
  const expectEach = (...expected: [status: string, attempts: number][]) =>
    expectDeliveries(
      ...([shop, id, 'payment.settled'] as const),
      [first, second, third].map((endpoint, n) => [endpoint.id, ...(expected[n] ?? ['', 0])]),
    );
  await expectEach(['delivered', 1], ['not_subscribed', 0], ['disabled', 0]);
  const signatures = new Set(inbox.received.map(({ headers }) => headers['service-signature']));
  expect(signatures.size).toBe(inbox.received.length);
  const event = await findEvent(shop, id, 'payment.settled');
  const redeliver = (body?: object, event_id = event.id) =>
    act(shop, `/v1/events/${event_id}/redeliver`, body);
  const all = await redeliver();
  expect([all.status, all.body.id]).toEqual([202, event.id]);
  await expectEach(['delivered', 2], ['not_subscribed', 0], ['disabled', 0]);
  expect((await redeliver({ endpoint_id: second.id })).status).toBe(202);
  await expectEach(['delivered', 2], ['delivered', 1], ['disabled', 0]);
  expectRefusal(await redeliver({ endpoint_id: third.id }), 'endpoint_disabled');
  expectRefusal(await redeliver({ endpoint_id: UNKNOWN }), 'webhook_endpoint_not_found');
  expectRefusal(await redeliver({}, 'evt_unknown'), 'event_not_found');
  const getHandle = () => {
    throw new Error('gone');
  };
  const temporal = Object.create(service.temporal, { workflow: { value: { getHandle } } });
  const redeliveries = createRedeliveries({
    ...{ stores: service.stores, temporal, now: () => new Date() },
  });
  await service.withApp({ redeliveries }, async (url) => {
    const path = `/v1/events/${event.id}/redeliver`;
    const once = { idempotencyKey: null, once: true };
    expectRefusal(
      await createClient(url, shop.key).post(path, {}, once),
      'temporarily_unavailable',
    );
  });
  await expectEach(['delivered', 2], ['delivered', 1], ['disabled', 0]);

  await shop.delete(`${PATH}/${first.id}`);
  await patch(shop, third.id, { status: 'enabled' });
  const { id: later } = await buildPayment(shop, { status: 'settled' });
  await expectDeliveries(shop, later, 'payment.settled', [
    [second.id, 'not_subscribed', 0],
    [third.id, 'delivered', 1],
  ]);
  // The deliveries to a deleted endpoint stay.
  await expectEach(['delivered', 2], ['delivered', 1], ['disabled', 0]);
  expect(ids((await shop.get(PATH)).body.data)).toEqual(
    expect.arrayContaining([second.id, third.id]),
  );
});

test('events that no endpoint gets are recorded without a workflow', async () => {
  const shop = await service.account();
  const { id: without } = await buildPayment(shop);
  await build(shop, { enabled_events: ['payment.settled'] });
  const { id: filtered } = await buildPayment(shop);
  for (const [payment, deliveries] of [
    [without, []],
    [filtered, [{ status: 'not_subscribed', attempts: 0 }]],
  ] as const) {
    const event = await findEvent(shop, payment);
    expect(event.deliveries).toMatchObject(deliveries);
    const handle = service.temporal.workflow.getHandle(webhookWorkflowId(event.id));
    await expect(handle.describe()).rejects.toMatchObject({ name: 'WorkflowNotFoundError' });
    // Endpoints of other tests may still get theirs.
    expect(inbox.received.filter(({ body }) => body.includes(payment))).toEqual([]);
  }
});

const list = (shop: Account, query: Record<string, string> = {}) =>
  shop.get(`/v1/events?${new URLSearchParams(query)}`);

const LONG_AGO = Date.UTC(2026, 0, 1, 12);

/** Records events of an account, of the given seconds, in one transaction. */
async function recordEvents(
  { account_id }: Account,
  seconds: readonly number[],
  { since = Date.now() - 60_000, hold = Promise.resolve() } = {},
): Promise<string[]> {
  const events = seconds.flatMap((second) => {
    const at = new Date(since + second * 1_000).toISOString();
    const about = { resource: 'payment', resource_id: randomUUID(), account_id } as const;
    const facts = { livemode: false, at, data: { payment_id: 'p1' }, request_id: 'req_1' };
    const transitions = [{ type: 'payment.settled' as const, transition: 1 }];
    return buildEvents({ ...about, ...facts, transitions }, []).events;
  });
  const eventIds = events.map(({ _id }) => _id);
  const write = async (session: ClientSession) => {
    await service.stores.events.insert(events, session);
    await hold;
  };
  // The server ends a transaction after 3 s, which a held one may exceed.
  const isRecorded = async () =>
    (await service.stores.events.getAll(eventIds)).length === events.length;
  await writeOnce(service.mongo, write, isRecorded);
  return eventIds;
}

/** Reads every page after an event. */
async function readAfter(shop: Account, start: string, limit = '2'): Promise<string[]> {
  const seen: string[] = [];
  for (let after: string | null = start; after !== null; ) {
    const { status, body }: Awaited<ReturnType<typeof list>> = await list(shop, { after, limit });
    expect(status).toBe(200);
    seen.push(...ids(body.data));
    after = body.next_cursor;
    expect(body.has_more).toBe(after !== null);
  }
  return seen;
}

test('events are listed newest first, and filtered by type and resource', async () => {
  const shop = await service.account();
  const { id: refund_id, payment_id } = await buildRefund(shop, { status: 'settled' });
  const types = ['refund.settled', 'payment.settled', 'payment.authorized'];
  types.push('payment.awaiting_customer');
  const events = await eventually('the event of the refund', async () => {
    const { data } = (await list(shop, { resource_id: payment_id })).body;
    return data.length === types.length && data;
  });
  expect(events.map(({ type }: { type: string }) => type)).toEqual(types);
  const [first, second] = events;
  expect(first).toEqual({
    id: expect.stringMatching(/^evt_[0-9a-f-]{36}$/),
    object: 'event',
    type: 'refund.settled',
    created: expect.any(String),
    livemode: false,
    data: { refund_id, payment_id },
    deliveries: [],
  });
  expect((await shop.get(`/v1/events/${first.id}`)).body).toEqual(first);
  expect(ids((await list(shop, { resource_id: refund_id })).body.data)).toEqual([first.id]);
  const settled = await list(shop, { type: 'payment.settled' });
  expect(ids(settled.body.data)).toEqual([second.id]);
  const pages = await walkPages((query) => list(shop, query), { limit: '3' });
  expect(pages.flat()).toEqual(ids(events));
});

test.each<[what: string, ago: (ms: number) => number]>([
  ['recent', (ms) => Date.now() - ms],
  ['old', () => LONG_AGO],
])(
  'the parameter after lists later %s events, oldest first, alike for readers that read at once',
  async (_, ago) => {
    const [shop, since] = [await service.account(), ago(60_000)];
    const seconds = Array.from({ length: 40 }, (_, n) => n);
    const [first = '', ...rest] = await recordEvents(shop, seconds, { since });
    const reads = Array.from({ length: 8 }, () => readAfter(shop, first, '7'));
    expect(await Promise.all(reads)).toEqual(reads.map(() => rest));
    expect(await readAfter(shop, rest[34] ?? '')).toEqual(rest.slice(35));
    // The minute before an event that was not read from a list is repeated.
    const reader = await service.account();
    const own = await recordEvents(reader, [0, 115, 120, 130], { since: ago(130_000) });
    const [old = '', recent = '', shown = '', next = ''] = own;
    expect(await readAfter(reader, shown)).toEqual([recent, next]);
    // It skips none for a reader who begins with another one.
    expect(await readAfter(reader, recent)).toEqual([shown, next]);
    expect(await readAfter(reader, old)).toEqual([recent, shown, next]);
    const [later = ''] = await recordEvents(shop, [59], { since });
    expect(await readAfter(shop, rest.at(-1) ?? '')).toEqual([later]);
    expect(await readAfter(shop, later)).toEqual([]);
  },
);

test('the parameter after never skips an event that becomes visible late', async () => {
  const shop = await service.account();
  const [first = ''] = await recordEvents(shop, [0]);
  const { opened, release } = gate();
  const late = recordEvents(shop, [10], { hold: opened });
  const shown = await recordEvents(shop, [20, 30]);
  expect(await readAfter(shop, first)).toEqual(shown);
  release();
  const [lateId = ''] = await late;
  // It is older than what was shown, and is shown nevertheless.
  expect(await readAfter(shop, shown.at(-1) ?? '')).toEqual([lateId]);
  expect(await readAfter(shop, first)).toEqual([...shown, lateId]);
  expect(ids((await list(shop)).body.data)).toEqual([...shown.toReversed(), lateId, first]);
});

test('the first list with the parameter after gives events from long ago no number, and has them in order', async () => {
  const shop = await service.account();
  const before = await recordEvents(shop, [1, 2, 3], { since: LONG_AGO });
  const [since = '', ...after] = await recordEvents(shop, [10, 20]);
  expect(await readAfter(shop, since)).toEqual(after);
  const numbers = (await service.stores.events.getAll(before)).map(({ order }) => order);
  expect(numbers).toEqual([0, 0, 0]);
  expect(await readAfter(shop, before[0] ?? '')).toEqual([...before.slice(1), since, ...after]);
});

test('the parameter after is refused with created_before, or an event of another account', async () => {
  const shop = await service.account();
  const [own = ''] = await recordEvents(shop, [0]);
  const [foreign = ''] = await recordEvents(await service.account(), [0]);
  const both = { after: own, created_before: '2026-01-01T00:00:00Z' };
  expectRefusal(await list(shop, both), 'invalid_request', ['after']);
  for (const after of [foreign, 'evt_none']) {
    expectRefusal(await list(shop, { after }), 'event_not_found');
  }
});
