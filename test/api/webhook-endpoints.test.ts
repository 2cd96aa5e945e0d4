import { randomUUID } from 'node:crypto';
import { EVENT_TYPES } from '../../src/domain/webhook/event';
import { useInbox } from '../support/hook';
import { eventually } from '../support/http';
import { type Account, useService } from '../support/service';
import { ids, walkPages } from './pages';
import { expectRefusal } from './refusal';

const service = useService();
const inbox = useInbox();

const PATH = '/v1/webhook-endpoints';
const NOBODY = 'we_00000000-0000-4000-8000-000000000000';

const create = async (shop: Account, body: Record<string, unknown> = {}) => {
  const answer = await shop.post(PATH, { url: inbox.url, ...body });
  expect(answer.status).toBe(201);
  return answer.body;
};

const change = (shop: Account, id: string, body: unknown) =>
  shop.send('PATCH', `${PATH}/${id}`, body);

/** A post without a body or an idempotency key. */
const act = (shop: Account, path: string, body?: unknown) =>
  shop.post(path, body, { idempotencyKey: null });

const url = () => new URL(inbox.url).href;

test('an endpoint is created, read, changed and deleted; its secret is shown once', async () => {
  const shop = await service.account();
  const created = await create(shop, { description: 'Orders' });
  const { signing_secret, ...shown } = created;
  expect(signing_secret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/);
  expect(shown).toEqual({
    id: expect.stringMatching(/^we_[0-9a-f-]{36}$/),
    object: 'webhook_endpoint',
    url: url(),
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
  expect((await shop.get(PATH)).body).toEqual({
    ...{ object: 'list', data: [shown], has_more: false, next_cursor: null },
  });
  const patch = { description: null, enabled_events: ['payout.sent', 'payment.settled'] };
  const changed = await change(shop, created.id, { ...patch, status: 'disabled' });
  expect(changed.status).toBe(200);
  expect(changed.body).toEqual({
    ...{ ...shown, ...patch, status: 'disabled', disabled_reason: 'merchant' },
    updated_at: expect.any(String),
  });
  expect(changed.body.updated_at > shown.updated_at).toBe(true);
  expect((await change(shop, created.id, { status: 'enabled' })).body).toMatchObject({
    ...{ ...patch, status: 'enabled', disabled_reason: null },
  });
  const deleted = await shop.delete(path);
  expect({ status: deleted.status, body: deleted.body }).toMatchObject({
    ...{ status: 200, body: { id: created.id, deleted: true } },
  });
  expectRefusal(await shop.get(path), 'webhook_endpoint_not_found');
  expectRefusal(await shop.delete(path), 'webhook_endpoint_not_found');
  expectRefusal(await change(shop, created.id, {}), 'webhook_endpoint_not_found');
  expectRefusal(await act(shop, `${path}/roll-secret`), 'webhook_endpoint_not_found');
  const tested = await act(shop, `${path}/test`, { type: 'payout.sent' });
  expectRefusal(tested, 'webhook_endpoint_not_found');
});

test('a repeated create gives the same endpoint and secret; another body is refused', async () => {
  const shop = await service.account();
  const idempotencyKey = randomUUID();
  const body = { url: inbox.url };
  const post = (changes = {}) => shop.post(PATH, { ...body, ...changes }, { idempotencyKey });
  const answers = await Promise.all([post(), post(), post()]);
  const [first] = answers;
  for (const answer of answers) expect(answer.text).toBe(first?.text);
  const replay = await post();
  expect(replay.headers.get('Idempotent-Replayed')).toBe('true');
  expect(replay.text).toBe(first?.text);
  const reused = await post({ description: 'other' });
  expectRefusal(reused, 'idempotency_key_reused');
  expect(reused.body.error.message).toContain(first?.body.id);
  expect((await shop.get(PATH)).body.data).toHaveLength(1);
  expectRefusal(await act(shop, PATH, body), 'idempotency_key_required');
});

test('what a body may not say is refused, and names its field', async () => {
  const shop = await service.account();
  const { id } = await create(shop);
  const bodies: [Record<string, unknown>, string][] = [
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
    expectRefusal(await change(shop, id, body), 'invalid_request', [field]);
  }
  expectRefusal(await shop.post(PATH, {}), 'invalid_request', ['url']);
  expectRefusal(await change(shop, id, { status: 'failing' }), 'invalid_request', ['status']);
  const late = await act(shop, `${PATH}/${id}/roll-secret`, { after: '2h' });
  expectRefusal(late, 'invalid_request', ['after']);
  expectRefusal(await act(shop, `${PATH}/${id}/test`, {}), 'invalid_request', ['type']);
});

test('an environment has 16 endpoints at most, also when all are created at once', async () => {
  const shop = await service.account();
  const answers = await Promise.all(
    Array.from({ length: 19 }, () => shop.post(PATH, { url: inbox.url })),
  );
  const refused = answers.filter(({ status }) => status !== 201);
  expect(refused).toHaveLength(3);
  for (const answer of refused) expectRefusal(answer, 'endpoint_limit_reached');
  const pages = await walkPages((query) => shop.get(`${PATH}?${new URLSearchParams(query)}`), {
    limit: '5',
  });
  expect(pages.map((page) => page.length)).toEqual([5, 5, 5, 1]);
  expect(new Set(pages.flat()).size).toBe(16);
  const idempotencyKey = randomUUID();
  const again = () => shop.post(PATH, { url: inbox.url }, { idempotencyKey });
  expectRefusal(await again(), 'endpoint_limit_reached');
  await shop.delete(`${PATH}/${pages[0]?.[0]}`);
  // A refusal does not use up the key.
  expect((await again()).status).toBe(201);
});

test('keys need the scopes, and list their own account and environment only', async () => {
  const shop = await service.account();
  const { id } = await create(shop);
  const path = `${PATH}/${id}`;
  const reader = await service.withKey(shop, false, ['webhooks:read', 'events:read']);
  const writer = await service.withKey(shop, false, ['webhooks:write']);
  expect((await reader.get(path)).status).toBe(200);
  for (const answer of [
    await reader.post(PATH, { url: inbox.url }),
    await change(reader, id, {}),
    await reader.delete(path),
    await act(reader, `${path}/roll-secret`),
    await act(reader, `${path}/test`, { type: 'payout.sent' }),
    await act(reader, `/v1/events/${NOBODY}/redeliver`),
    await writer.get(path),
    await writer.get(PATH),
  ]) {
    expectRefusal(answer, 'api_key_scope_insufficient');
  }
  for (const stranger of [await service.account(), await service.withKey(shop, true)]) {
    expect((await stranger.get(PATH)).body.data).toEqual([]);
  }
});

test('a rolled secret signs at once, or later', async () => {
  const shop = await service.account();
  const { id, signing_secret: first } = await create(shop);
  const roll = (body?: unknown) => act(shop, `${PATH}/${id}/roll-secret`, body);
  const later = await roll({ after: '24h' });
  expect(later.status).toBe(200);
  expect(later.body).toMatchObject({ id, signing_secret: expect.stringMatching(/^whsec_/) });
  const now = await roll();
  expect(new Set([first, later.body.signing_secret, now.body.signing_secret]).size).toBe(3);
});

test('a test event is sent once, to this endpoint, and is in the log', async () => {
  const shop = await service.account();
  await create(shop, { url: `${inbox.url}/first` });
  const { id } = await create(shop, { url: `${inbox.url}/second` });
  inbox.answer.status = 500;
  const tested = await act(shop, `${PATH}/${id}/test`, { type: 'refund.settled' });
  expect(tested.status).toBe(202);
  expect(tested.body).toMatchObject({
    ...{ object: 'event', type: 'refund.settled' },
    data: { test: true },
    deliveries: [{ endpoint_id: id, status: 'pending', attempts: 0 }],
  });
  const read = () => shop.get(`/v1/events/${tested.body.id}`);
  await eventually('the test ends', async () => {
    return (await read()).body.deliveries[0].status === 'exhausted';
  });
  expect((await read()).body.deliveries).toMatchObject([
    { endpoint_id: id, status: 'exhausted', attempts: 1, log: [{ status: 500 }] },
  ]);
  expect(inbox.received).toHaveLength(1);
  await change(shop, id, { status: 'disabled' });
  const refused = await act(shop, `${PATH}/${id}/test`, { type: 'refund.settled' });
  expectRefusal(refused, 'endpoint_disabled');
});

test('an event is sent again to one endpoint, or to all that want it', async () => {
  const shop = await service.account();
  const first = await create(shop, { url: `${inbox.url}/1` });
  const second = await create(shop, { url: `${inbox.url}/2`, enabled_events: ['payout.sent'] });
  const payment = await shop.settledPayment();
  const { body: list } = await shop.get(
    `/v1/events?resource_id=${payment.id}&type=payment.settled`,
  );
  const [event] = list.data;
  const path = `/v1/events/${event.id}/redeliver`;
  const statuses = async () => {
    const { body } = await shop.get(`/v1/events/${event.id}`);
    return body.deliveries.map((each: Record<string, unknown>) => [
      each['status'],
      each['attempts'],
    ]);
  };
  const become = (expected: unknown) =>
    eventually('the deliveries', async () => {
      return JSON.stringify(await statuses()) === JSON.stringify(expected);
    });
  await become([
    ['delivered', 1],
    ['not_subscribed', 0],
  ]);
  const all = await act(shop, path);
  expect(all.status).toBe(202);
  expect(all.body.id).toBe(event.id);
  await become([
    ['delivered', 2],
    ['not_subscribed', 0],
  ]);
  expect((await act(shop, path, { endpoint_id: second.id })).status).toBe(202);
  await become([
    ['delivered', 2],
    ['delivered', 1],
  ]);
  await change(shop, first.id, { status: 'disabled' });
  expectRefusal(await act(shop, path, { endpoint_id: first.id }), 'endpoint_disabled');
  expectRefusal(await act(shop, path, { endpoint_id: NOBODY }), 'webhook_endpoint_not_found');
  expectRefusal(await act(shop, '/v1/events/evt_unknown/redeliver'), 'event_not_found');
  const third = await create(shop, { url: `${inbox.url}/3` });
  expect((await act(shop, path, { endpoint_id: third.id })).status).toBe(202);
  await become([
    ['delivered', 2],
    ['delivered', 1],
    ['delivered', 1],
  ]);
  expect(ids((await shop.get(PATH)).body.data)).toEqual([third.id, second.id, first.id]);
});
