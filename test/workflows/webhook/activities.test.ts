import { MongoNetworkError } from 'mongodb';
import type { WebhookActivityDeps } from '../../../activities/webhooks/next-attempt';
import { attemptOffsetMs } from '../../../src/domain/webhook/schedule';
import { listAttempts } from '../../../src/store/deliveries';
import { secretOwner } from '../../../src/store/endpoints';
import type { EventDocument } from '../../../src/store/events';
import { createEndpointLimits } from '../../../src/webhooks/endpoint-limits';
import type { WebhookPost } from '../../../src/webhooks/post';
import type { PostResult } from '../../../src/webhooks/post-result';
import { verifySignature } from '../../../src/webhooks/signature';
import { mockActivityEnvironment } from '../../support/quiet';
import {
  buildActivities,
  buildInput,
  recordEvent,
  SECRET,
  setEndpoint,
  toEndpointKey,
  useStores,
} from './setting';

/** Time of the first attempt; MongoDB is real, nothing is posted. */
const FIRST_AT = Date.parse('2026-03-01T12:00:00.000Z');
const URL_1 = 'https://one.example.com/hook';
const URL_2 = 'https://two.example.com/hook';

const stores = useStores();

const buildAnswer = (status: number, more: object = {}): PostResult => ({
  outcome: 'response',
  ...{ status, excerpt: '', durationMs: 1, ...more },
});
const FAILED = { result: buildAnswer(500) };

interface AttemptOptions extends Partial<WebhookActivityDeps> {
  /** The server's count of tries. */
  attempt?: number;
  run?: number;
  atMs?: number;
  result?: PostResult;
  /** Left by an earlier try. */
  heartbeatDetails?: unknown;
  /** Whether the server was made to try now, and counts from 1 again. */
  isReset?: boolean;
}

async function attemptAt(
  event: EventDocument,
  {
    attempt = 1,
    run = 0,
    atMs = FIRST_AT + attemptOffsetMs(Math.min(attempt, 12)) + 60_000,
    result = buildAnswer(200),
    heartbeatDetails,
    isReset = false,
    ...changes
  }: AttemptOptions = {},
) {
  const posts: WebhookPost[] = [];
  const heartbeats: unknown[] = [];
  const { deliverWebhook } = buildActivities(stores, {
    now: () => atMs,
    post: async (sent) => {
      posts.push(sent);
      return result;
    },
    ...changes,
  });
  const currentAttemptScheduledTimestampMs = isReset ? atMs : FIRST_AT;
  const times = { scheduledTimestampMs: FIRST_AT, currentAttemptScheduledTimestampMs };
  const environment = mockActivityEnvironment({ attempt, ...times, heartbeatDetails });
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  const outcome: unknown = await environment
    .run(deliverWebhook, buildInput(event, run))
    .catch((error: unknown) => error);
  return { outcome, posts, heartbeats };
}

const readDelivery = async ({ _id }: EventDocument) =>
  (await stores.deliveries.forEvents([_id]))[0];
const readRows = async ({ _id }: EventDocument) =>
  listAttempts(await stores.deliveries.readLogs([_id]));

describe('an attempt', () => {
  test('reads the endpoint again unless it is the first of the event', async () => {
    const event = await recordEvent(stores, URL_1);
    const before = await stores.endpoints.list(event.account_id, event.livemode);
    const endpoints = { list: stores.endpoints.list, listCached: async () => before };
    await setEndpoint(stores, event, URL_2);
    const urls = [];
    for (const [run, attempt, status] of [
      [0, 1, 500],
      [0, 2, 500],
      [1, 1, 500],
      [1, 2, 200],
    ] as const) {
      const result = buildAnswer(status);
      const { posts } = await attemptAt(event, { run, attempt, result, endpoints });
      urls.push(posts[0]?.url);
    }
    expect(urls).toEqual([URL_1, URL_2, URL_2, URL_2]);
    // A redelivery has attempts of its own, though the event counts them all.
    const rows = (await readRows(event)).map(({ run, attempt }) => `${run}.${attempt}`);
    expect(rows).toEqual(['1.2', '1.1', '0.2', '0.1']);
    expect(await readDelivery(event)).toMatchObject({ status: 'delivered', attempts: 4 });
  });

  test('is signed with a rolled secret from its time on, and with the old one until then', async () => {
    const event = await recordEvent(stores, URL_1);
    const { account_id, livemode } = event;
    const owner = secretOwner(toEndpointKey(event));
    const ciphertext = await stores.encrypter.encrypt('whsec_new', owner);
    const afterMs = 3_600_000;
    const now = new Date(FIRST_AT);
    await stores.endpoints.roll({ account_id, livemode, ciphertext, now, afterMs });
    const findSecrets = async (attempt: number, atMs: number) => {
      const nextDelayMs = () => 500;
      const { posts } = await attemptAt(event, { ...FAILED, attempt, atMs, nextDelayMs });
      return [SECRET, 'whsec_new'].filter((secret) =>
        posts.some(({ headers, body }) => {
          const header = headers['Service-Signature'];
          return verifySignature({ header, body, secret, now: atMs / 1_000 });
        }),
      );
    };
    expect(await findSecrets(1, FIRST_AT + afterMs - 1_000)).toEqual([SECRET]);
    expect(await findSecrets(2, FIRST_AT + afterMs)).toEqual(['whsec_new']);
  });

  test('ends the delivery when the endpoint has been removed', async () => {
    const event = await recordEvent(stores, URL_1);
    await attemptAt(event, FAILED);
    const [endpoint] = await stores.endpoints.list(event.account_id, event.livemode);
    if (endpoint !== undefined) await stores.endpoints.remove(endpoint);
    const { outcome, posts } = await attemptAt(event, { attempt: 2 });
    expect({ outcome, posts }).toEqual({ outcome: 'no_endpoint', posts: [] });
    expect(await readDelivery(event)).toMatchObject({
      ...{ status: 'no_endpoint', attempts: 1, next_attempt_at: null },
    });
  });

  test.each([
    { livemode: false, allowPrivate: true, isPrivate: true },
    { livemode: false, allowPrivate: false, isPrivate: false },
    { livemode: true, allowPrivate: true, isPrivate: false },
  ])('reaches this machine only in a sandbox that allows it: %j', async (params) => {
    const event = await recordEvent(stores, URL_1, params.livemode);
    const { posts } = await attemptAt(event, { allowPrivate: params.allowPrivate });
    expect(posts.map(({ allowPrivate }) => allowPrivate)).toEqual([params.isPrivate]);
  });

  test('of a sandbox event never reaches the live endpoint', async () => {
    const event = await recordEvent(stores, URL_1, true);
    const sandbox = { ...event, _id: `${event._id}s`, livemode: false, position: `${event._id}s` };
    await stores.db.collection<EventDocument>('events').insertOne(sandbox);
    expect(await attemptAt(sandbox)).toMatchObject({ outcome: 'no_endpoint', posts: [] });
  });

  test('that the server was made to make now counts after the attempts before it', async () => {
    const event = await recordEvent(stores, URL_1);
    await attemptAt(event, FAILED);
    const atMs = FIRST_AT + attemptOffsetMs(2) + 60_000;
    const { outcome } = await attemptAt(event, { ...FAILED, isReset: true, atMs });
    expect(outcome).toMatchObject({ message: expect.stringContaining('(attempt 2 of 12)') });
    expect((await readDelivery(event))?.attempts).toBe(2);
  });

  test('is not repeated when its success was stored but not reported', async () => {
    const event = await recordEvent(stores, URL_1);
    await attemptAt(event);
    const again = await attemptAt(event, { attempt: 2 });
    expect(again).toMatchObject({ outcome: 'delivered', posts: [] });
    expect((await readDelivery(event))?.status).toBe('delivered');
  });

  test('that succeeds counts more than a failed try of the same number', async () => {
    const event = await recordEvent(stores, URL_1);
    const post = async (): Promise<PostResult> => {
      // A try that was given up ends late, while this one is in progress.
      await attemptAt(event, FAILED);
      return buildAnswer(200);
    };
    expect(await attemptAt(event, { post })).toMatchObject({ outcome: 'delivered' });
    expect(await readDelivery(event)).toMatchObject({ status: 'delivered', attempts: 1 });
  });

  test('over the limit of its endpoint is made later, and is not used up', async () => {
    const event = await recordEvent(stores, URL_1);
    const limits = createEndpointLimits({ slots: 1, random: () => 0.5, now: () => 0 });
    const others: Promise<unknown>[] = [];
    const post = (): Promise<PostResult> => {
      others.push(attemptAt(event, { limits, heartbeatDetails: { carried: true } }));
      return Promise.all(others).then(() => buildAnswer(200));
    };
    const first = await attemptAt(event, { limits, post });
    expect(first.outcome).toBe('delivered');
    expect(await others[0]).toEqual({
      outcome: expect.objectContaining({
        ...{ type: 'EndpointBusy', nonRetryable: false, category: 'BENIGN' },
        nextRetryDelay: 1_000,
      }),
      posts: [],
      heartbeats: [{ carried: true }],
    });
    expect(await readRows(event)).toMatchObject([{ attempt: 1 }]);
  });

  test('that may have been made as the first is looked up before another is made', async () => {
    const event = await recordEvent(stores, URL_1);
    const limits = createEndpointLimits({ slots: 1, promptSlots: 1 });
    await attemptAt(event, { limits });
    let posts = 0;
    const post = async (): Promise<PostResult> => {
      posts += 1;
      return buildAnswer(200);
    };
    const { firstAttempt } = buildActivities(stores, { limits, post });
    const attempt = (resume: { resume?: true }) =>
      mockActivityEnvironment().run(firstAttempt, { ...buildInput(event), ...resume });
    expect(await attempt({ resume: true })).toBe('delivered');
    expect(posts).toBe(0);
    expect(await attempt({})).toBe('delivered');
    expect(posts).toBe(1);
    expect((await readDelivery(event))?.attempts).toBe(1);
  });

  test('logs the request, the event, the endpoint and the attempt, and nothing else', async () => {
    const event = await recordEvent(stores, URL_1);
    const lines: unknown[] = [];
    const write = (fields: object) => lines.push(fields);
    const log = { info: write, warn: write };
    await attemptAt(event, { ...FAILED, log });
    await attemptAt(event, { attempt: 2, log });
    const { endpoint_id } = toEndpointKey(event);
    const fields = { request_id: 'req_1', event_id: event._id, endpoint_id };
    expect(lines).toEqual([1, 2].map((attempt) => ({ ...fields, attempt })));
  });
});

describe('a failed attempt', () => {
  test('names the host, the fault and the time of the next one, and nothing that was sent', async () => {
    const event = await recordEvent(stores, URL_1);
    const timeout = { outcome: 'error', kind: 'timeout', message: 'No answer.' } as const;
    const result = { ...timeout, durationMs: 9 };
    const { outcome } = await attemptAt(event, { atMs: FIRST_AT, result, random: () => 0 });
    expect(outcome).toMatchObject({
      ...{ type: 'WebhookAttemptFailed', nonRetryable: false, category: 'BENIGN' },
      message: 'one.example.com: No answer. (attempt 1 of 12)',
      nextRetryDelay: 42_000,
    });
    expect(await readRows(event)).toMatchObject([
      {
        ...{ status_code: null, error: 'No answer.', outcome: 'failed' },
        next_attempt_at: '2026-03-01T12:00:42.000Z',
      },
    ]);
  });

  test('is followed by one as late as Retry-After asks for', async () => {
    const result = buildAnswer(503, { retryAfterSeconds: 600 });
    const { outcome } = await attemptAt(await recordEvent(stores, URL_1), {
      atMs: FIRST_AT,
      result,
    });
    expect(outcome).toMatchObject({ nextRetryDelay: 600_000 });
  });
});

describe('an outage of the database', () => {
  const fail = () => Promise.reject(new MongoNetworkError('connection refused'));
  const unreachable = { type: 'RecordUnreachable', nonRetryable: false, nextRetryDelay: 15_000 };
  const withoutRows = () => ({
    deliveries: { ...stores.deliveries, addAttempt: fail },
    patienceMs: 0,
  });

  test('before the POST uses up no attempt, and the next try comes soon', async () => {
    const event = await recordEvent(stores, URL_1);
    const away = { endpoints: { ...stores.endpoints, listCached: fail }, patienceMs: 0 };
    expect(await attemptAt(event, away)).toMatchObject({ outcome: unreachable, posts: [] });
    expect(await readRows(event)).toEqual([]);
    const next = await attemptAt(event, { attempt: 300 });
    expect(next).toMatchObject({ outcome: 'delivered', posts: [{ url: URL_1 }] });
    expect(await readRows(event)).toMatchObject([{ attempt: 1 }]);
  });

  test('after a failed POST leaves it to the next try, which stores it and keeps its wait', async () => {
    const event = await recordEvent(stores, URL_1);
    const first = await attemptAt(event, { ...withoutRows(), ...FAILED, atMs: FIRST_AT });
    expect(first).toMatchObject({ outcome: unreachable, posts: [{ url: URL_1 }] });
    const [heartbeatDetails] = first.heartbeats;
    expect(heartbeatDetails).toMatchObject({ url: new URL(URL_1).origin, response_excerpt: '' });
    const soon = { attempt: 2, atMs: FIRST_AT + 15_000, heartbeatDetails };
    const second = await attemptAt(event, soon);
    expect(second.posts).toEqual([]);
    expect(second.outcome).toMatchObject({ type: 'WebhookAttemptFailed' });
    const due = { attempt: 3, atMs: FIRST_AT + 45_000, heartbeatDetails };
    expect(await attemptAt(event, due)).toMatchObject({ outcome: 'delivered' });
    const rows = await readRows(event);
    expect(rows.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [2, 'delivered'],
      [1, 'failed'],
    ]);
  });

  test('after a successful POST does not repeat it', async () => {
    const event = await recordEvent(stores, URL_1);
    const { heartbeats } = await attemptAt(event, withoutRows());
    const again = await attemptAt(event, { attempt: 2, heartbeatDetails: heartbeats[0] });
    expect(again).toMatchObject({ outcome: 'delivered', posts: [] });
    expect(await readDelivery(event)).toMatchObject({ attempts: 1 });
  });
});
