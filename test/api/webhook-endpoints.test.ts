import { randomUUID } from 'node:crypto';
import { EVENT_TYPES } from '../../src/domain/webhook/event';
import { buildEndpoint, buildPayment } from '../support/factories';
import { useInbox } from '../support/hook';
import { eventually } from '../support/http';
import { type Account, useService } from '../support/service';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const PATH = '/v1/webhook-endpoints';
const UNKNOWN = 'we_00000000-0000-4000-8000-000000000000';

const service = useService();
const inbox = useInbox();

const build = (shop: Account, fields: object = {}) =>
  buildEndpoint(shop, { url: inbox.url, ...fields });
const patch = (shop: Account, id: string, body: object) =>
  shop.send('PATCH', `${PATH}/${id}`, body);
/** Posts without an idempotency key. */
const act = (shop: Account, path: string, body?: object) =>
  shop.post(path, body, { idempotencyKey: null });

test('an endpoint is created, read, changed and deleted, and shows its secret once', async () => {
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

test('a repeated create answers with the same endpoint and secret, and refuses another body', async () => {
  const shop = await service.account();
  const idempotencyKey = randomUUID();
  const post = (changes = {}) =>
    shop.post(PATH, { url: inbox.url, ...changes }, { idempotencyKey });
  const [first, ...others] = await Promise.all([post(), post(), post()]);
  const replay = await post();
  expect(replay.headers.get('Idempotent-Replayed')).toBe('true');
  for (const answer of [...others, replay]) expect(answer.text).toBe(first.text);
  const reused = await post({ description: 'other' });
  expectRefusal(reused, 'idempotency_key_reused');
  expect(reused.body.error.message).toContain(first.body.id);
  expect((await shop.get(PATH)).body.data).toHaveLength(1);
  expectRefusal(await act(shop, PATH, { url: inbox.url }), 'idempotency_key_required');
});

test('a create or change with a wrong field is refused, naming the field', async () => {
  const shop = await service.account();
  const { id } = await build(shop);
  const bodies: [body: object, field: string][] = [
    [{ url: 'http://shop.example/hook' }, 'url'],
    [{ url: 'https://10.0.0.1/hook' }, 'url'],
    [{ url: 'no url' }, 'url'],
    [{ url: '' }, 'url'],
    [{ url: null }, 'url'],
    [{ enabled_events: null }, 'enabled_events'],
    [{ enabled_events: [] }, 'enabled_events'],
    [{ enabled_events: ['payment.lost'] }, 'enabled_events.0'],
    [{ description: 'x'.repeat(256) }, 'description'],
    [{ secret: 'own' }, 'secret'],
  ];
  for (const [body, field] of bodies) {
    expectRefusal(await shop.post(PATH, { url: inbox.url, ...body }), 'invalid_request', [field]);
    expectRefusal(await patch(shop, id, body), 'invalid_request', [field]);
  }
  expectRefusal(await shop.post(PATH, {}), 'invalid_request', ['url']);
  expectRefusal(await patch(shop, id, { status: 'failing' }), 'invalid_request', ['status']);
  const late = await act(shop, `${PATH}/${id}/roll-secret`, { after: '2h' });
  expectRefusal(late, 'invalid_request', ['after']);
  expectRefusal(await act(shop, `${PATH}/${id}/test`, {}), 'invalid_request', ['type']);
});

test('an environment of an account has 16 endpoints at most, also when many are created at once', async () => {
  const shop = await service.account();
  const post = (idempotencyKey = randomUUID()) =>
    shop.post(PATH, { url: inbox.url }, { idempotencyKey });
  const answers = await Promise.all(Array.from({ length: 19 }, () => post()));
  const refused = answers.filter(({ status }) => status !== 201);
  expect(refused).toHaveLength(3);
  for (const answer of refused) expectRefusal(answer, 'endpoint_limit_reached');
  const list = (query: Record<string, string>) => shop.get(`${PATH}?${new URLSearchParams(query)}`);
  const pages = await walkPages(list, { limit: '5' });
  expect(pages.map((page) => page.length)).toEqual([5, 5, 5, 1]);
  expect(new Set(pages.flat()).size).toBe(16);
  const key = randomUUID();
  expectRefusal(await post(key), 'endpoint_limit_reached');
  await shop.delete(`${PATH}/${pages[0]?.[0]}`);
  // A refusal does not use up the key.
  expect((await post(key)).status).toBe(201);
  for (const other of [await service.account(), await service.withKey(shop, true)]) {
    expect((await other.get(PATH)).body.data).toEqual([]);
  }
});

test('each roll gives another secret, which signs at once or later', async () => {
  const shop = await service.account();
  const { id, signing_secret } = await build(shop);
  const roll = (body?: object) => act(shop, `${PATH}/${id}/roll-secret`, body);
  const later = await roll({ after: '24h' });
  expect(later.status).toBe(200);
  expect(later.body).toMatchObject({ id, signing_secret: expect.stringMatching(/^whsec_/) });
  const secrets = [signing_secret, later.body.signing_secret, (await roll()).body.signing_secret];
  expect(new Set(secrets).size).toBe(3);
});

test('a test event is sent once, to its endpoint alone, and has a delivery', async () => {
  const shop = await service.account();
  await build(shop, { url: `${inbox.url}/first` });
  const { id } = await build(shop, { url: `${inbox.url}/second` });
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

test('an event is redelivered to one endpoint, or to all that are enabled for it', async () => {
  const shop = await service.account();
  const first = await build(shop, { url: `${inbox.url}/1` });
  const second = await build(shop, { url: `${inbox.url}/2`, enabled_events: ['payout.sent'] });
  const { id } = await buildPayment(shop, { status: 'settled' });
  const { data } = (await shop.get(`/v1/events?resource_id=${id}&type=payment.settled`)).body;
  const [event] = data;
  const path = `/v1/events/${event.id}/redeliver`;
  const redeliver = (endpoint_id: string) => act(shop, path, { endpoint_id });
  const untilDeliveries = (...expected: [status: string, attempts: number][]) =>
    eventually(`deliveries ${expected}`, async () => {
      const { deliveries } = (await shop.get(`/v1/events/${event.id}`)).body;
      const seen = deliveries.map((each: Record<string, unknown>) => [
        each['status'],
        each['attempts'],
      ]);
      return JSON.stringify(seen) === JSON.stringify(expected);
    });
  await untilDeliveries(['delivered', 1], ['not_subscribed', 0]);
  const all = await act(shop, path);
  expect([all.status, all.body.id]).toEqual([202, event.id]);
  await untilDeliveries(['delivered', 2], ['not_subscribed', 0]);
  expect((await redeliver(second.id)).status).toBe(202);
  await untilDeliveries(['delivered', 2], ['delivered', 1]);
  await patch(shop, first.id, { status: 'disabled' });
  expectRefusal(await redeliver(first.id), 'endpoint_disabled');
  expectRefusal(await redeliver(UNKNOWN), 'webhook_endpoint_not_found');
  expectRefusal(await act(shop, '/v1/events/evt_unknown/redeliver'), 'event_not_found');
  const third = await build(shop, { url: `${inbox.url}/3` });
  expect((await redeliver(third.id)).status).toBe(202);
  await untilDeliveries(['delivered', 2], ['delivered', 1], ['delivered', 1]);
  expect(ids((await shop.get(PATH)).body.data)).toEqual([third.id, second.id, first.id]);
});
