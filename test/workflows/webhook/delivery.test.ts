import { MongoNetworkError } from 'mongodb';
import type { WebhookActivities } from '../../../activities/webhooks/deliver';
import { ATTEMPTS_MAX, attemptOffsetMs } from '../../../src/domain/webhook/schedule';
import { runWorker } from '../../../src/temporal/native';
import { verifySignature } from '../../../src/webhooks/signature';
import { useFixture } from '../../support/fixture';
import { saveHistory } from '../../support/histories';
import { skippingServer } from '../../support/skipping-server';
import { useReceivers } from '../../webhooks/posting';
import { activitiesOn, recordEvent, SECRET, startDelivery, useStores, workerOn } from './setting';

const stores = useStores();

/** A 24 h schedule in seconds: the server skips the waits, everything else is real. */
const delivering = useFixture(
  async () => {
    const server = { env: await skippingServer(), taskQueue: 'webhooks' };
    const changes = { ...unlessAway(), patienceMs: 0, now: () => nowMs };
    const worker = await workerOn(server, onServerTime(activitiesOn(stores, changes)));
    return { ...server, worker, running: runWorker(worker) };
  },
  async ({ env, worker, running }) => {
    worker.shutdown();
    await running;
    await env.teardown();
  },
);

/** The skipping server's clock, which stands still during an attempt. */
let nowMs = 0;
/** By the same clock: until then the database can't be reached. */
let awayUntil = 0;
/** Real time that a busy machine may take for an attempt. */
const BUSY_MS = 60_000;

function onServerTime(activities: WebhookActivities): WebhookActivities {
  return {
    ...activities,
    firstAttempt: async (input) => {
      nowMs = await delivering.env.currentTimeMs();
      return await activities.firstAttempt(input);
    },
    deliverWebhook: async (input) => {
      nowMs = await delivering.env.currentTimeMs();
      return await activities.deliverWebhook(input);
    },
  };
}

/** The store that a delivery reads first, which does not answer while the database is away. */
function unlessAway() {
  const answer = <T>(ask: () => Promise<T>) =>
    nowMs < awayUntil ? Promise.reject(new MongoNetworkError('connection refused')) : ask();
  const { endpoints } = stores;
  const list: typeof endpoints.list = (...owner) => answer(() => endpoints.list(...owner));
  return { endpoints: { ...endpoints, list, listCached: list } };
}

const receivers = useReceivers();

interface Received {
  /** The server's clock. */
  atMs: number;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}

/** A merchant who answers attempt n with the nth status, and then with the last of them. */
async function merchant(statuses: number[], headers: Record<string, string> = {}) {
  const received: Received[] = [];
  const receiver = await receivers.http(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const atMs = await delivering.env.currentTimeMs();
    received.push({ atMs, headers: request.headers, body: Buffer.concat(chunks).toString() });
    const status = statuses[received.length - 1] ?? statuses.at(-1) ?? 500;
    response.writeHead(status, headers).end(`answer ${received.length}`);
  });
  return { url: receiver.url, host: `localhost:${receiver.port}`, received };
}

test('a 2xx acknowledges: one attempt, signed over the frozen bytes', async () => {
  const { url, received } = await merchant([204]);
  const event = await recordEvent(stores, url);
  const handle = await startDelivery(delivering, event);
  expect(await handle.result()).toEqual({ outcome: 'delivered' });
  await saveHistory(handle, 'webhook-delivered');
  expect(received).toHaveLength(1);
  const [{ headers, body, atMs } = { headers: {}, body: '', atMs: 0 }] = received;
  expect(body).toBe(event.body);
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'service-event-type': 'payment.settled',
    'service-signature': expect.stringMatching(/^t=\d+,v1=[0-9a-f]{64}$/),
  });
  expect(headers['authorization']).toBeUndefined();
  const header = String(headers['service-signature']);
  const now = Math.floor(atMs / 1_000);
  expect(verifySignature({ header, body, secret: SECRET, now })).toBe(true);
  expect(await stores.deliveries.forEvent(event._id)).toEqual([
    {
      event_id: event._id,
      run: 0,
      attempt: 1,
      at: expect.any(String),
      url,
      status_code: 204,
      error: null,
      duration_ms: expect.any(Number),
      response_excerpt: '',
      outcome: 'delivered',
      next_attempt_at: null,
    },
  ]);
  expect((await stores.events.get(event._id))?.delivery).toEqual({
    status: 'delivered',
    attempts: 1,
    next_attempt_at: null,
    run: 0,
  });
});

test('one that never acknowledges gets 12 attempts at their offsets, then no more', async () => {
  const { url, host, received } = await merchant([500, 302, 404, 503]);
  const event = await recordEvent(stores, url);
  const handle = await startDelivery(delivering, event);
  expect(await handle.result()).toEqual({ outcome: 'exhausted' });
  await saveHistory(handle, 'webhook-exhausted');
  expect(received).toHaveLength(ATTEMPTS_MAX);
  const first = received[0]?.atMs ?? 0;
  for (const [index, { atMs, body, headers }] of received.entries()) {
    const late = atMs - first - attemptOffsetMs(index + 1);
    const wait = index === 0 ? 0 : 42_000 * 2 ** (index - 1);
    // Half of the stated jitter, as the test's dice say, and what the machine took for its work.
    const jitter = Math.min(wait / 20, 60_000) / 2;
    expect(late).toBeGreaterThanOrEqual(jitter - 1_000);
    expect(late).toBeLessThanOrEqual(jitter + BUSY_MS);
    expect(body).toBe(event.body);
    const header = String(headers['service-signature']);
    const now = Math.floor(atMs / 1_000);
    expect(verifySignature({ header, body, secret: SECRET, now, toleranceSeconds: 60 })).toBe(true);
  }
  expect((await stores.events.get(event._id))?.delivery).toEqual({
    status: 'exhausted',
    attempts: ATTEMPTS_MAX,
    next_attempt_at: null,
    run: 0,
  });
  const rows = (await stores.deliveries.forEvent(event._id)).reverse();
  expect(rows.map((row) => row.status_code)).toEqual([500, 302, 404, ...Array(9).fill(503)]);
  expect(rows.map((row) => row.response_excerpt)[11]).toBe('answer 12');
  for (const [index, row] of rows.slice(0, -1).entries()) {
    const madeAt = Date.parse(rows[index + 1]?.at ?? '');
    const announcedAt = Date.parse(row.next_attempt_at ?? '');
    expect(Math.abs(madeAt - announcedAt)).toBeLessThan(BUSY_MS);
  }
  const { searchAttributes } = await handle.describe();
  expect(searchAttributes['ServiceAttention']).toEqual(['webhook_exhausted']);
  const { events } = await handle.fetchHistory();
  const failed = events?.find((past) => past.activityTaskFailedEventAttributes);
  const { failure } = failed?.activityTaskFailedEventAttributes ?? {};
  expect(failure?.message).toBe(`HTTP 503 from ${host} (attempt 12 of 12)`);
  expect(JSON.stringify(events)).not.toContain(SECRET);
});

test('one that recovers at the third attempt is delivered there and left alone', async () => {
  const { url, received } = await merchant([500, 500, 200]);
  const event = await recordEvent(stores, url);
  const handle = await startDelivery(delivering, event);
  expect(await handle.result()).toEqual({ outcome: 'delivered' });
  expect(received).toHaveLength(3);
  expect((await stores.events.get(event._id))?.delivery).toMatchObject({
    status: 'delivered',
    attempts: 3,
  });
  const { searchAttributes } = await handle.describe();
  expect(searchAttributes['ServiceAttention']).toBeUndefined();
});

test('Retry-After pushes the next attempt later', async () => {
  const { url, received } = await merchant([503, 200], { 'Retry-After': '600' });
  const handle = await startDelivery(delivering, await recordEvent(stores, url));
  expect(await handle.result()).toEqual({ outcome: 'delivered' });
  const waited = (received[1]?.atMs ?? 0) - (received[0]?.atMs ?? 0);
  expect(waited).toBeGreaterThanOrEqual(599_000);
  expect(waited).toBeLessThanOrEqual(600_000 + BUSY_MS);
});

test('however long a Retry-After, all twelve attempts are made within 24 h', async () => {
  const { url, received } = await merchant([429], { 'Retry-After': '999999' });
  const handle = await startDelivery(delivering, await recordEvent(stores, url));
  expect(await handle.result()).toEqual({ outcome: 'exhausted' });
  expect(received).toHaveLength(ATTEMPTS_MAX);
  const tookMs = (received[11]?.atMs ?? 0) - (received[0]?.atMs ?? 0);
  expect(tookMs).toBeLessThanOrEqual(24 * 60 * 60 * 1_000);
});

test('an hour without the database: as many attempts shown as POSTs received, all delivered', async () => {
  const { url, received } = await merchant([500, 500, 200]);
  const events = await Promise.all([1, 2, 3].map(() => recordEvent(stores, url)));
  awayUntil = (await delivering.env.currentTimeMs()) + 3_600_000;
  const handles = await Promise.all(events.map((event) => startDelivery(delivering, event)));
  for (const handle of handles) expect(await handle.result()).toEqual({ outcome: 'delivered' });
  const shown = await Promise.all(events.map((event) => stores.events.get(event._id)));
  const attempts = shown.map((event) => event?.delivery.attempts ?? 0);
  expect(attempts.reduce((sum, made) => sum + made, 0)).toBe(received.length);
  expect(received.every(({ atMs }) => atMs >= awayUntil)).toBe(true);
  expect(received[0]?.atMs).toBeLessThan(awayUntil + BUSY_MS);
});

test('a cancel request from the Temporal UI leaves no event untold', async () => {
  const { url, received } = await merchant([500, 200]);
  const event = await recordEvent(stores, url);
  const handle = await startDelivery(delivering, event);
  await handle.cancel();
  expect(await handle.result()).toEqual({ outcome: 'delivered' });
  expect(received).toHaveLength(2);
});

test('a redelivery starts the same workflow id anew, with attempts of its own', async () => {
  const { url, received } = await merchant([...Array(12).fill(500), 500, 200]);
  const event = await recordEvent(stores, url);
  const first = await startDelivery(delivering, event);
  expect(await first.result()).toEqual({ outcome: 'exhausted' });
  await expect(startDelivery(delivering, event)).rejects.toThrow(/already started/);
  const again = await startDelivery(delivering, event, 1);
  expect(again.workflowId).toBe(first.workflowId);
  expect(await again.result()).toEqual({ outcome: 'delivered' });
  expect(new Set(received.map(({ body }) => body))).toEqual(new Set([event.body]));
  const rows = await stores.deliveries.forEvent(event._id);
  expect(rows.slice(0, 3).map(({ run, attempt }) => [run, attempt])).toEqual([
    [1, 2],
    [1, 1],
    [0, 12],
  ]);
  expect((await stores.events.get(event._id))?.delivery).toMatchObject({
    status: 'delivered',
    attempts: 14,
  });
});

test('without an endpoint nothing is sent, and that is recorded', async () => {
  const event = await recordEvent(stores, null);
  const handle = await startDelivery(delivering, event);
  expect(await handle.result()).toEqual({ outcome: 'no_endpoint' });
  await saveHistory(handle, 'webhook-no-endpoint');
  expect((await stores.events.get(event._id))?.delivery).toMatchObject({
    status: 'no_endpoint',
    attempts: 0,
  });
});

test('an event nobody recorded fails at once, and is not retried for a day', async () => {
  const { url } = await merchant([200]);
  const event = { ...(await recordEvent(stores, url)), _id: 'evt_unknown' };
  const handle = await startDelivery(delivering, event);
  await expect(handle.result()).rejects.toMatchObject({
    cause: { cause: { type: 'EventUnknown', nonRetryable: true } },
  });
});
