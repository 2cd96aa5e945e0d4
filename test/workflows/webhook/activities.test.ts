import { MockActivityEnvironment } from '@temporalio/testing';
import type { WebhookActivityDeps } from '../../../activities/webhooks';
import { endpointOwner } from '../../../src/store/endpoints';
import type { EventDocument } from '../../../src/store/events';
import type { WebhookPost } from '../../../src/webhooks/post';
import type { PostResult } from '../../../src/webhooks/post-result';
import { verifySignature } from '../../../src/webhooks/signature';
import { activitiesOn, openStores, recordEvent, SECRET, type Stores } from './setting';

/** One attempt at a time, at a moment of our choosing; MongoDB is real, nothing is posted. */
const FIRST_AT = Date.parse('2026-03-01T12:00:00.000Z');
const URL_1 = 'https://one.example.com/hook';
const URL_2 = 'https://two.example.com/hook';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(() => stores.close());

function answer(status: number): PostResult {
  return { outcome: 'response', status, excerpt: '', durationMs: 1 };
}

async function attemptAt(
  event: EventDocument,
  {
    attempt = 1,
    atMs = FIRST_AT,
    result = answer(200),
    ...changes
  }: Partial<WebhookActivityDeps> & {
    attempt?: number;
    atMs?: number;
    result?: PostResult;
  } = {},
) {
  const posts: WebhookPost[] = [];
  const { deliverWebhook } = activitiesOn(stores, {
    now: () => atMs,
    post: async (sent) => {
      posts.push(sent);
      return result;
    },
    ...changes,
  });
  const environment = new MockActivityEnvironment({ attempt, scheduledTimestampMs: FIRST_AT });
  const input = { event_id: event._id, run: 0, request_id: event.request_id };
  const outcome: unknown = await environment
    .run(deliverWebhook, input)
    .catch((error: unknown) => error);
  return { outcome, posts };
}

function signedWith(secret: string, { headers, body }: WebhookPost, atMs: number): boolean {
  const header = headers['Service-Signature'];
  return verifySignature({ header, body, secret, now: atMs / 1_000 });
}

test('each attempt uses the URL as it stands then', async () => {
  const event = await recordEvent(stores, URL_1);
  const first = await attemptAt(event, { result: answer(500) });
  const sealed = await stores.sealer.seal('whsec_unused', 'nobody');
  const { account_id, livemode } = event;
  await stores.endpoints.set({ account_id, livemode, url: URL_2, sealed, now: new Date(FIRST_AT) });
  const second = await attemptAt(event, { attempt: 2 });
  expect([first, second].map(({ posts }) => posts[0]?.url)).toEqual([URL_1, URL_2]);
});

test('a rolled secret signs from its moment on, and the old one until then', async () => {
  const event = await recordEvent(stores, URL_1);
  const { account_id, livemode } = event;
  const sealed = await stores.sealer.seal('whsec_new', endpointOwner(account_id, livemode));
  const hour = 3_600_000;
  await stores.endpoints.roll({
    account_id,
    livemode,
    sealed,
    now: new Date(FIRST_AT),
    afterMs: hour,
  });
  const secretsAt = async (attempt: number, atMs: number) => {
    const { posts } = await attemptAt(event, { attempt, atMs, result: answer(500) });
    return [SECRET, 'whsec_new'].filter((secret) =>
      posts.some((sent) => signedWith(secret, sent, atMs)),
    );
  };
  expect(await secretsAt(1, FIRST_AT + hour - 1_000)).toEqual([SECRET]);
  expect(await secretsAt(2, FIRST_AT + hour)).toEqual(['whsec_new']);
});

test('an endpoint removed meanwhile ends the delivery', async () => {
  const event = await recordEvent(stores, URL_1);
  await attemptAt(event, { result: answer(500) });
  await stores.endpoints.remove(event.account_id, event.livemode);
  const { outcome, posts } = await attemptAt(event, { attempt: 2 });
  expect({ outcome, posts }).toEqual({ outcome: 'no_endpoint', posts: [] });
  expect((await stores.events.get(event._id))?.delivery).toMatchObject({
    status: 'no_endpoint',
    attempts: 1,
    next_attempt_at: null,
  });
});

test.each([
  { livemode: false, allowPrivate: true, private: true },
  { livemode: false, allowPrivate: false, private: false },
  { livemode: true, allowPrivate: true, private: false },
])('this machine may be posted to only by sandbox events where allowed: %j', async (given) => {
  const event = await recordEvent(stores, URL_1, given.livemode);
  const { posts } = await attemptAt(event, { allowPrivate: given.allowPrivate });
  expect(posts.map(({ allowPrivate }) => allowPrivate)).toEqual([given.private]);
});

test('an event of the sandbox never reaches the live endpoint', async () => {
  const event = await recordEvent(stores, URL_1, true);
  const sandbox = { ...event, _id: `${event._id}s`, livemode: false, position: `${event._id}s` };
  await stores.db.collection<EventDocument>('events').insertOne(sandbox);
  expect(await attemptAt(sandbox)).toEqual({ outcome: 'no_endpoint', posts: [] });
});

test('an attempt whose success was kept but not reported is not made again', async () => {
  const event = await recordEvent(stores, URL_1);
  await attemptAt(event);
  expect(await attemptAt(event, { attempt: 2 })).toEqual({ outcome: 'delivered', posts: [] });
  const { recordExhausted } = activitiesOn(stores);
  const input = { event_id: event._id, run: 0, request_id: 'req_1' };
  expect(await new MockActivityEnvironment().run(recordExhausted, input)).toBe('delivered');
  expect((await stores.events.get(event._id))?.delivery.status).toBe('delivered');
});

test('a failure says who and what, when to retry, and nothing that was sent', async () => {
  const event = await recordEvent(stores, URL_1);
  const result = {
    outcome: 'error',
    kind: 'timeout',
    message: 'No answer.',
    durationMs: 9,
  } as const;
  const { outcome } = await attemptAt(event, { result, random: () => 0 });
  expect(outcome).toMatchObject({
    type: 'WebhookAttemptFailed',
    message: 'one.example.com: No answer.',
    nextRetryDelay: 42_000,
    nonRetryable: false,
    category: 'BENIGN',
  });
  expect(await stores.deliveries.forEvent(event._id)).toMatchObject([
    {
      status_code: null,
      error: 'No answer.',
      outcome: 'failed',
      next_attempt_at: '2026-03-01T12:00:42.000Z',
    },
  ]);
});

test('after the twelfth no further attempt is announced', async () => {
  const event = await recordEvent(stores, URL_1);
  const { outcome } = await attemptAt(event, { attempt: 12, result: answer(500) });
  expect(outcome).toMatchObject({ message: 'HTTP 500 from one.example.com' });
  expect(outcome).toMatchObject({ nextRetryDelay: undefined });
  expect((await stores.events.get(event._id))?.delivery.next_attempt_at).toBeNull();
});

test('the log carries the request, the event and the attempt, and nothing else', async () => {
  const event = await recordEvent(stores, URL_1);
  const lines: unknown[] = [];
  const log = {
    info: (fields: object) => lines.push(fields),
    warn: (fields: object) => lines.push(fields),
  };
  await attemptAt(event, { result: answer(500), log });
  await attemptAt(event, { attempt: 2, log });
  const fields = { request_id: 'req_1', event_id: event._id };
  expect(lines).toEqual([
    { ...fields, attempt: 1 },
    { ...fields, attempt: 2 },
  ]);
});
