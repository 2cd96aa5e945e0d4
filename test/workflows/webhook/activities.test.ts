import { MockActivityEnvironment } from '@temporalio/testing';
import { MongoNetworkError } from 'mongodb';
import type { WebhookActivityDeps } from '../../../activities/webhooks/next-attempt';
import { attemptOffsetMs } from '../../../src/domain/webhook/schedule';
import { endpointOwner } from '../../../src/store/endpoints';
import type { EventDocument } from '../../../src/store/events';
import { createEndpointLimits } from '../../../src/webhooks/endpoint-limits';
import type { WebhookPost } from '../../../src/webhooks/post';
import type { PostResult } from '../../../src/webhooks/post-result';
import { verifySignature } from '../../../src/webhooks/signature';
import { activitiesOn, inputOf, recordEvent, SECRET, useStores } from './setting';

/** Time of the first attempt; MongoDB is real, nothing is posted. */
const FIRST_AT = Date.parse('2026-03-01T12:00:00.000Z');
const URL_1 = 'https://one.example.com/hook';
const URL_2 = 'https://two.example.com/hook';

const stores = useStores();

function answer(status: number): PostResult {
  return { outcome: 'response', status, excerpt: '', durationMs: 1 };
}

async function attemptAt(
  event: EventDocument,
  {
    attempt = 1,
    run = 0,
    atMs = FIRST_AT + attemptOffsetMs(Math.min(attempt, 12)) + 60_000,
    result = answer(200),
    heartbeatDetails,
    isReset = false,
    ...changes
  }: Partial<WebhookActivityDeps> & {
    /** The server's count of tries. */
    attempt?: number;
    run?: number;
    atMs?: number;
    result?: PostResult;
    /** Left by an earlier try. */
    heartbeatDetails?: unknown;
    /** Whether the server was made to try now, and counts from 1 again. */
    isReset?: boolean;
  } = {},
) {
  const posts: WebhookPost[] = [];
  const heartbeats: unknown[] = [];
  const { deliverWebhook } = activitiesOn(stores, {
    now: () => atMs,
    post: async (sent) => {
      posts.push(sent);
      return result;
    },
    ...changes,
  });
  const currentAttemptScheduledTimestampMs = isReset ? atMs : FIRST_AT;
  const times = { scheduledTimestampMs: FIRST_AT, currentAttemptScheduledTimestampMs };
  const info = { attempt, ...times, heartbeatDetails };
  const environment = new MockActivityEnvironment(info);
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  const input = inputOf(event, run);
  const outcome: unknown = await environment
    .run(deliverWebhook, input)
    .catch((error: unknown) => error);
  return { outcome, posts, heartbeats };
}

function signedWith(secret: string, { headers, body }: WebhookPost, atMs: number): boolean {
  const header = headers['Service-Signature'];
  return verifySignature({ header, body, secret, now: atMs / 1_000 });
}

test('each attempt uses the URL as it stands then', async () => {
  const event = await recordEvent(stores, URL_1);
  const first = await attemptAt(event, { result: answer(500) });
  const sealed = await stores.sealer.encrypt('whsec_unused', 'nobody');
  const { account_id, livemode } = event;
  await stores.endpoints.set({ account_id, livemode, url: URL_2, sealed, now: new Date(FIRST_AT) });
  const second = await attemptAt(event, { attempt: 2 });
  expect([first, second].map(({ posts }) => posts[0]?.url)).toEqual([URL_1, URL_2]);
});

test('the first goes by what is remembered, and no other one does', async () => {
  const event = await recordEvent(stores, URL_1);
  const before = await stores.endpoints.list(event.account_id, event.livemode);
  const endpoints = { list: stores.endpoints.list, listCached: async () => before };
  const { account_id, livemode } = event;
  const sealed = await stores.sealer.encrypt('whsec_unused', 'nobody');
  await stores.endpoints.set({ account_id, livemode, url: URL_2, sealed, now: new Date(FIRST_AT) });
  const first = await attemptAt(event, { result: answer(500), endpoints });
  const second = await attemptAt(event, { attempt: 2, endpoints });
  const redelivered = await attemptAt(event, { run: 1, endpoints });
  const urls = [first, second, redelivered].map(({ posts }) => posts[0]?.url);
  expect(urls).toEqual([URL_1, URL_2, URL_2]);
});

test('a rolled secret signs from its moment on, and the old one until then', async () => {
  const event = await recordEvent(stores, URL_1);
  const { account_id, livemode } = event;
  const sealed = await stores.sealer.encrypt('whsec_new', endpointOwner(account_id, livemode));
  const hour = 3_600_000;
  await stores.endpoints.roll({
    account_id,
    livemode,
    sealed,
    now: new Date(FIRST_AT),
    afterMs: hour,
  });
  const secretsAt = async (attempt: number, atMs: number) => {
    const nextDelayMs = () => 500;
    const { posts } = await attemptAt(event, { attempt, atMs, result: answer(500), nextDelayMs });
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
  const [endpoint] = await stores.endpoints.list(event.account_id, event.livemode);
  if (endpoint !== undefined) await stores.endpoints.remove(endpoint);
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
  expect(await attemptAt(sandbox)).toMatchObject({ outcome: 'no_endpoint', posts: [] });
});

test('a try that the server was made to make now follows the attempts before it', async () => {
  const event = await recordEvent(stores, URL_1);
  await attemptAt(event, { result: answer(500) });
  const atMs = FIRST_AT + attemptOffsetMs(2) + 60_000;
  const { outcome } = await attemptAt(event, { isReset: true, atMs, result: answer(500) });
  expect(outcome).toMatchObject({ message: expect.stringContaining('(attempt 2 of 12)') });
  expect((await stores.events.get(event._id))?.delivery.attempts).toBe(2);
});

test('an attempt whose success was kept but not reported is not made again', async () => {
  const event = await recordEvent(stores, URL_1);
  await attemptAt(event);
  expect(await attemptAt(event, { attempt: 2 })).toMatchObject({ outcome: 'delivered', posts: [] });
  const { recordExhausted } = activitiesOn(stores);
  const input = inputOf(event, 0);
  expect(await new MockActivityEnvironment().run(recordExhausted, input)).toBe('delivered');
  expect((await stores.events.get(event._id))?.delivery.status).toBe('delivered');
});

test('of two tries with the same number, the one that got through is told', async () => {
  const event = await recordEvent(stores, URL_1);
  const post = async (): Promise<PostResult> => {
    // A try that was given up ends late, while this one is under way.
    await attemptAt(event, { result: answer(500) });
    return answer(200);
  };
  expect(await attemptAt(event, { post })).toMatchObject({ outcome: 'delivered' });
  expect((await stores.events.get(event._id))?.delivery).toMatchObject({
    status: 'delivered',
    attempts: 1,
  });
});

test('a late failure of an earlier run leaves what a later one has delivered', async () => {
  const event = await recordEvent(stores, URL_1);
  const delivered = { status: 'delivered', attempts: 0, next_attempt_at: null, run: 1 } as const;
  await stores.events.setDelivery(event._id, delivered);
  await attemptAt(event, { result: answer(500) });
  expect((await stores.events.get(event._id))?.delivery).toEqual({ ...delivered, attempts: 1 });
});

test('a failure says who and what, when to retry, and nothing that was sent', async () => {
  const event = await recordEvent(stores, URL_1);
  const result = {
    outcome: 'error',
    kind: 'timeout',
    message: 'No answer.',
    durationMs: 9,
  } as const;
  const { outcome } = await attemptAt(event, { atMs: FIRST_AT, result, random: () => 0 });
  expect(outcome).toMatchObject({
    type: 'WebhookAttemptFailed',
    message: 'one.example.com: No answer. (attempt 1 of 12)',
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
  let outcome: unknown;
  for (let attempt = 1; attempt <= 12; attempt += 1) {
    ({ outcome } = await attemptAt(event, { attempt, result: answer(500) }));
  }
  const exhausted = {
    type: 'WebhookExhausted',
    message: 'HTTP 500 from one.example.com (attempt 12 of 12)',
  };
  expect(outcome).toMatchObject({ ...exhausted, nonRetryable: true, nextRetryDelay: undefined });
  const again = await attemptAt(event, { attempt: 13, atMs: FIRST_AT + 172_800_000 });
  expect(again).toMatchObject({ outcome: exhausted, posts: [] });
  expect((await stores.events.get(event._id))?.delivery.next_attempt_at).toBeNull();
});

test('over the limit of its endpoint it comes back for its turn, and none is used up', async () => {
  const event = await recordEvent(stores, URL_1);
  const limits = createEndpointLimits({ slots: 1, random: () => 0.5, now: () => 0 });
  const under: Promise<unknown>[] = [];
  const post = (): Promise<PostResult> => {
    // While it is under way another one asks.
    under.push(attemptAt(event, { limits, heartbeatDetails: { carried: true } }));
    return Promise.all(under).then(() => answer(200));
  };
  const first = await attemptAt(event, { limits, post });
  expect(first.outcome).toBe('delivered');
  expect(await under[0]).toEqual({
    outcome: expect.objectContaining({
      type: 'EndpointBusy',
      nonRetryable: false,
      category: 'BENIGN',
      nextRetryDelay: 1_000,
    }),
    posts: [],
    heartbeats: [{ carried: true }],
  });
  expect(await stores.deliveries.forEvent(event._id)).toMatchObject([{ attempt: 1 }]);
});

test('a first attempt that may have been made is looked for before another is', async () => {
  const event = await recordEvent(stores, URL_1);
  const limits = createEndpointLimits({ slots: 1, promptSlots: 1 });
  await attemptAt(event, { limits });
  const input = inputOf(event, 0);
  let posts = 0;
  const post = async (): Promise<PostResult> => {
    posts += 1;
    return answer(200);
  };
  const { firstAttempt } = activitiesOn(stores, { limits, post });
  const attempt = (resume: { resume?: true }) =>
    new MockActivityEnvironment().run(firstAttempt, { ...input, ...resume });
  expect(await attempt({ resume: true })).toBe('delivered');
  expect(posts).toBe(0);
  expect(await attempt({})).toBe('delivered');
  expect(posts).toBe(1);
  expect((await stores.events.get(event._id))?.delivery.attempts).toBe(1);
});

describe('an outage of our own uses up no attempt', () => {
  const gone = () => Promise.reject(new MongoNetworkError('connection refused'));
  const unreachable = { type: 'RecordUnreachable', nonRetryable: false, nextRetryDelay: 15_000 };

  test('before the POST: nothing is posted, and the next try comes soon', async () => {
    const event = await recordEvent(stores, URL_1);
    const away = { endpoints: { ...stores.endpoints, listCached: gone }, patienceMs: 0 };
    expect(await attemptAt(event, away)).toMatchObject({ outcome: unreachable, posts: [] });
    expect(await stores.deliveries.forEvent(event._id)).toEqual([]);
    const next = await attemptAt(event, { attempt: 300 });
    expect(next).toMatchObject({ outcome: 'delivered', posts: [{ url: URL_1 }] });
    expect(await stores.deliveries.forEvent(event._id)).toMatchObject([{ attempt: 1 }]);
  });

  test('after the POST: it is carried to the next try, counted there, and its wait is kept to', async () => {
    const event = await recordEvent(stores, URL_1);
    const away = { deliveries: { ...stores.deliveries, addAttempt: gone }, patienceMs: 0 };
    const first = await attemptAt(event, { ...away, atMs: FIRST_AT, result: answer(500) });
    expect(first).toMatchObject({ outcome: unreachable, posts: [{ url: URL_1 }] });
    const [heartbeatDetails] = first.heartbeats;
    expect(heartbeatDetails).toMatchObject({ url: new URL(URL_1).origin, response_excerpt: '' });
    const soon = { attempt: 2, atMs: FIRST_AT + 15_000, heartbeatDetails };
    const second = await attemptAt(event, soon);
    expect(second.posts).toEqual([]);
    expect(second.outcome).toMatchObject({ type: 'WebhookAttemptFailed' });
    const due = { attempt: 3, atMs: FIRST_AT + 45_000, heartbeatDetails };
    expect(await attemptAt(event, due)).toMatchObject({ outcome: 'delivered' });
    const rows = await stores.deliveries.forEvent(event._id);
    expect(rows.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [2, 'delivered'],
      [1, 'failed'],
    ]);
  });

  test('a delivery that was posted and not recorded is not posted again', async () => {
    const event = await recordEvent(stores, URL_1);
    const away = { deliveries: { ...stores.deliveries, addAttempt: gone }, patienceMs: 0 };
    const { heartbeats } = await attemptAt(event, away);
    const again = await attemptAt(event, { attempt: 2, heartbeatDetails: heartbeats[0] });
    expect(again).toMatchObject({ outcome: 'delivered', posts: [] });
    expect((await stores.events.get(event._id))?.delivery).toMatchObject({ attempts: 1 });
  });

  test('a worker that was replaced after its attempt was kept: the wait is kept to', async () => {
    const event = await recordEvent(stores, URL_1);
    await attemptAt(event, { atMs: FIRST_AT, result: answer(500) });
    const replaced = await attemptAt(event, { attempt: 2, atMs: FIRST_AT + 10_000 });
    expect(replaced.posts).toEqual([]);
    expect(replaced.outcome).toMatchObject({ type: 'WebhookAttemptFailed' });
    expect(await stores.deliveries.forEvent(event._id)).toHaveLength(1);
  });
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
