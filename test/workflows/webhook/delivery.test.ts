import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { WorkflowHandle } from '@temporalio/client';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { MongoNetworkError } from 'mongodb';
import type { WebhookActivities } from '../../../activities/webhooks/deliver';
import type { WebhookActivityDeps } from '../../../activities/webhooks/record';
import {
  ATTEMPTS_MAX,
  attemptOffsetMs,
  type DeliveryKey,
} from '../../../src/domain/events/delivery';
import { tryDeliveryNow } from '../../../src/service/events/deliveries';
import { redeliverEvent } from '../../../src/service/events/redeliveries';
import {
  type DeliveryOrphan,
  findDeliveries,
  findLateDeliveries,
  restart,
} from '../../../src/service/operators/reconcile/orphans';
import { listAttempts } from '../../../src/store/deliveries';
import { secretOwner } from '../../../src/store/endpoints';
import type { EventDocument } from '../../../src/store/events';
import { runWorker } from '../../../src/temporal/native';
import { verifySignature } from '../../../src/webhooks/attempt';
import { createEndpointLimits, HostBusy } from '../../../src/webhooks/endpoint-limits';
import { type PostWebhook, postWebhook } from '../../../src/webhooks/post';
import type { PostResult } from '../../../src/webhooks/post-result';
import { patientClient } from '../../cli/resource-setting';
import { workflowBundles } from '../../support/bundle';
import { eventually } from '../../support/eventually';
import { useFixture } from '../../support/fixture';
import { saveHistory } from '../../support/histories';
import { mockActivityEnvironment } from '../../support/quiet';
import { runWhile } from '../../support/run-while';
import { skippingServer } from '../../support/skipping-server';
import { useReceivers } from '../../webhooks/posting';
import { receiveHttp } from '../../webhooks/receiver';
import {
  buildActivities,
  buildInput,
  type Delivering,
  insertEvent,
  openWorker,
  recordEvent,
  recordEvents,
  SECRET,
  startDelivery,
  toEndpointKey,
  useRealServer,
  useStores,
} from './setting';

const stores = useStores();

const real = useRealServer();

const receivers = useReceivers();

const HUNG: PostResult = { outcome: 'error', kind: 'timeout', message: '', durationMs: 10_000 };

type EventId = Pick<EventDocument, '_id'>;

const readDelivery = async ({ _id }: EventId) => (await stores.deliveries.forEvents([_id]))[0];
const readRows = async ({ _id }: EventId) => listAttempts(await stores.deliveries.readLogs([_id]));

type Started = Awaited<ReturnType<typeof startDelivery>>;

const readOutcomes = async (handle: Started) => Object.values(await handle.result());

describe('the delivery of an event', () => {
  /** Server that skips the waits of the 24 hours; everything else is real. */
  const skipping = useFixture(
    async () => {
      const server = { env: await skippingServer(), taskQueue: 'webhooks' };
      const post: PostWebhook = (webhook) => postWebhook({ ...webhook, admitAttempt });
      const activities = buildActivities(stores, { post, now: () => nowMs });
      const worker = await openWorker(server, onServerTime(activities));
      return { ...server, worker, running: runWorker(worker) };
    },
    async ({ env, worker, running }) => {
      worker.shutdown();
      await running;
      await env.teardown();
    },
  );

  /** Ms for which the next attempts wait for their host. */
  let hostWaits: number[] = [];
  const admitAttempt = async () => {
    const waitMs = hostWaits.shift() ?? 0;
    if (waitMs > 0) throw new HostBusy(waitMs);
  };

  /** The skipping server's clock, which stops during an attempt. */
  let nowMs = 0;
  /** Real time that a busy machine may take for an attempt. */
  const BUSY_MS = 60_000;

  const onServerTime = (activities: WebhookActivities): WebhookActivities => ({
    ...activities,
    firstAttempt: async (input) => {
      nowMs = await skipping.env.currentTimeMs();
      return await activities.firstAttempt(input);
    },
    deliverWebhook: async (input) => {
      nowMs = await skipping.env.currentTimeMs();
      return await activities.deliverWebhook(input);
    },
  });

  interface Received {
    /** The server's clock. */
    atMs: number;
    headers: NodeJS.Dict<string | string[]>;
    body: string;
  }

  /** Opens a merchant who answers attempt n with the nth status, and then with the last of them. */
  async function openMerchant(...statuses: number[]) {
    const received: Received[] = [];
    const receiver = await receivers.http(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const atMs = await skipping.env.currentTimeMs();
      received.push({ atMs, headers: request.headers, body: Buffer.concat(chunks).toString() });
      const status = statuses[received.length - 1] ?? statuses.at(-1) ?? 500;
      response.writeHead(status).end(`answer ${received.length}`);
    });
    const event = await recordEvent(stores, receiver.url);
    return { url: receiver.url, host: `localhost:${receiver.port}`, received, event };
  }

  const isSigned = ({ headers, body, atMs }: Received, toleranceSeconds?: number) => {
    const header = String(headers['service-signature']);
    const tolerance = toleranceSeconds === undefined ? {} : { toleranceSeconds };
    const now = Math.floor(atMs / 1_000);
    return verifySignature({ header, body, secret: SECRET, now, ...tolerance });
  };

  test('ends with a 2xx after one attempt, which is signed and stored', async () => {
    const { url, received, event } = await openMerchant(204);
    const handle = await startDelivery(skipping, event);
    expect(await readOutcomes(handle)).toEqual(['delivered']);
    await saveHistory(handle, 'webhook-delivered');
    expect(received.map(({ body }) => body)).toEqual([event.body]);
    expect(received[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'service-event-type': 'payment.settled',
    });
    expect(received.every((each) => isSigned(each))).toBe(true);
    const { endpoint_id } = toEndpointKey(event);
    expect(await readRows(event)).toEqual([
      {
        ...{ event_id: event._id, endpoint_id, run: 0, attempt: 1, at: expect.any(String), url },
        ...{ status_code: 204, error: null, duration_ms: expect.any(Number) },
        ...{ response_excerpt: '', outcome: 'delivered', next_attempt_at: null },
      },
    ]);
    const delivered = { status: 'delivered', attempts: 1, next_attempt_at: null, run: 0 };
    expect(await readDelivery(event)).toMatchObject({ ...delivered, endpoint_id });
  });

  test('ends after 12 attempts at their offsets when no answer acknowledges it', async () => {
    const { host, received, event } = await openMerchant(500, 302, 404, 503);
    const handle = await startDelivery(skipping, event);
    expect(await readOutcomes(handle)).toEqual(['exhausted']);
    await saveHistory(handle, 'webhook-exhausted');
    expect(received).toHaveLength(ATTEMPTS_MAX);
    for (const [index, attempt] of received.entries()) {
      const late = attempt.atMs - (received[0]?.atMs ?? 0) - attemptOffsetMs(index + 1);
      expect(late).toBeGreaterThanOrEqual(-1_000);
      // Half of the largest jitter, as the test's dice say, and what the machine took for its work.
      expect(late).toBeLessThanOrEqual(30_000 + BUSY_MS);
      expect(attempt.body).toBe(event.body);
      expect(isSigned(attempt, 60)).toBe(true);
    }
    expect(await readDelivery(event)).toMatchObject({
      ...{ status: 'exhausted', attempts: ATTEMPTS_MAX, next_attempt_at: null, run: 0 },
    });
    const rows = (await readRows(event)).reverse();
    expect(rows.map((row) => row.status_code)).toEqual([500, 302, 404, ...Array(9).fill(503)]);
    expect(rows.at(-1)).toMatchObject({ attempt: 12, response_excerpt: 'answer 12' });
    const { searchAttributes } = await handle.describe();
    expect(searchAttributes['ServiceAttention']).toEqual(['webhook_exhausted']);
    const words = `Last failure: \`HTTP 503 from ${host}[^]*event redeliver ${event._id}`;
    expect(await handle.query('__temporal_workflow_metadata')).toMatchObject({
      currentDetails: expect.stringMatching(new RegExp(words)),
    });
    const { events } = await handle.fetchHistory();
    expect(JSON.stringify(events)).not.toContain(SECRET);
    // The twelve are counted where they are made: a try that ended without an answer is none.
    const scheduled = events?.find((past) => past.activityTaskScheduledEventAttributes);
    const { retryPolicy } = scheduled?.activityTaskScheduledEventAttributes ?? {};
    expect(retryPolicy).toMatchObject({ backoffCoefficient: 2, maximumAttempts: 0 });
  });

  test('continues after a cancel request from the Temporal UI', async () => {
    const { received, event } = await openMerchant(500, 200);
    const handle = await startDelivery(skipping, event);
    await handle.cancel();
    expect(await readOutcomes(handle)).toEqual(['delivered']);
    expect(received).toHaveLength(2);
    const { searchAttributes } = await handle.describe();
    expect(searchAttributes['ServiceAttention']).toBeUndefined();
  });

  test('waits for its host without using up an attempt', async () => {
    const { received, event } = await openMerchant(500, 204);
    hostWaits = [700, 0, 90_000, 0];
    const handle = await startDelivery(skipping, event);
    expect(await readOutcomes(handle)).toEqual(['delivered']);
    expect(hostWaits).toEqual([]);
    expect(received).toHaveLength(2);
    const [first = 0, second = 0] = received.map(({ atMs }) => atMs);
    expect(second - first).toBeGreaterThanOrEqual(attemptOffsetMs(2) + 90_000);
    const rows = await readRows(event);
    expect(rows.map(({ attempt, status_code }) => [attempt, status_code])).toEqual([
      [2, 204],
      [1, 500],
    ]);
  });

  test('sends nothing without an endpoint, and stores that', async () => {
    const event = await recordEvent(stores, null);
    const handle = await startDelivery(skipping, event);
    expect(await readOutcomes(handle)).toEqual(['no_endpoint']);
    await saveHistory(handle, 'webhook-no-endpoint');
    expect(await readDelivery(event)).toMatchObject({ status: 'no_endpoint', attempts: 0 });
  });

  test('fails at once when the event is not stored', async () => {
    const { event } = await openMerchant(200);
    const handle = await startDelivery(skipping, { ...event, _id: 'evt_unknown' });
    await expect(handle.result()).rejects.toMatchObject({
      cause: { cause: { type: 'EventUnknown', nonRetryable: true } },
    });
  });
});
let queues = 0;
const openQueue = (): Delivering => {
  queues += 1;
  return { env: real.env, taskQueue: `webhooks-${queues}` };
};

describe('the first attempt', () => {
  // Each task is counted; a machine that stalls adds one.
  beforeAll(() => void jest.retryTimes(3));
  afterAll(() => void jest.retryTimes(0));

  /**
   * Delivers three events of a merchant, one after the other, who answers the nth post with the nth
   * status. The first shows that the endpoint answers at once.
   */
  async function deliverThree(statuses: number[], changes: Partial<WebhookActivityDeps> = {}) {
    let posts = 0;
    const receiver = await receivers.http((request, response) => {
      request.resume();
      posts += 1;
      response.writeHead(statuses[posts - 1] ?? 200).end('thanks');
    });
    const events = await recordEvents(stores, receiver.url, 3);
    const delivering = openQueue();
    const worker = await openWorker(delivering, buildActivities(stores, changes));
    const handles = await runWhile(worker, async () => {
      const started = [];
      for (const event of events) {
        const handle = await startDelivery(delivering, event);
        expect(await readOutcomes(handle)).toEqual(['delivered']);
        started.push(handle);
      }
      return started;
    });
    const histories = await Promise.all(
      handles.map(async (handle) => (await handle.fetchHistory()).events ?? []),
    );
    const second = events[1] ?? { _id: '' };
    const rows = (await readRows(second)).reverse();
    const delivery = await readDelivery(second);
    return { url: receiver.url, posts, handles, histories, rows, delivery };
  }

  test('ends the delivery in the task that starts it where the endpoint answers at once', async () => {
    const { histories, handles, rows, delivery, posts } = await deliverThree([200, 204]);
    // With the native activity: one marker, three events of it and three of its task more.
    expect(histories.map((events) => events.length)).toEqual([12, 6, 6]);
    expect(posts).toBe(3);
    expect(rows).toEqual([
      expect.objectContaining({
        ...{ run: 0, attempt: 1, outcome: 'delivered', status_code: 204, next_attempt_at: null },
      }),
    ]);
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1, next_attempt_at: null });
    if (handles[1] !== undefined) await saveHistory(handles[1], 'webhook-first-attempt');
  });

  test('that fails is the first of twelve, and the activity shows it', async () => {
    const changes = { nextDelayMs: () => 2_000 };
    const { histories, rows, delivery, posts } = await deliverThree([200, 503, 200], changes);
    expect(posts).toBe(4);
    expect(rows.map(({ attempt, status_code }) => [attempt, status_code])).toEqual([
      [1, 503],
      [2, 200],
    ]);
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 2 });
    const tried = histories[1]?.find((event) => event.activityTaskStartedEventAttributes);
    expect(tried?.activityTaskStartedEventAttributes).toMatchObject({
      attempt: 2,
      lastFailure: { message: expect.stringMatching(/^HTTP 503 from .*\(attempt 1 of 12\)$/) },
    });
    // The endpoint has answered at once again meanwhile.
    expect(histories[2]).toHaveLength(6);
  });

  test('that could not be stored is stored by a later step, and is not repeated', async () => {
    const { deliveries } = stores;
    let calls = 0;
    const addAttempt: typeof deliveries.addAttempt = (row) => {
      calls += 1;
      // Away after the first event, until another step comes with the row that it was handed.
      const isAway = calls > 1 && row.url.includes('source');
      return isAway ? Promise.reject(new MongoNetworkError('away')) : deliveries.addAttempt(row);
    };
    const changes = { deliveries: { ...deliveries, addAttempt } };
    const { url, posts, rows, histories } = await deliverThree([200], changes);
    expect(posts).toBe(3);
    const { origin } = new URL(url);
    expect(rows).toMatchObject([
      { attempt: 1, url: origin, response_excerpt: '', outcome: 'delivered' },
    ]);
    expect(JSON.stringify(histories[1])).not.toMatch(/source=test|thanks/);
  });
});

test('events that wait for an endpoint make one try each, and their attempt once it answers again', async () => {
  await stores.db.collection('deliveries').deleteMany({});
  const delivering = openQueue();
  const receiver = await receivers.http((request, response) => {
    request.resume();
    response.writeHead(200).end();
  });
  const [late, ...events] = await recordEvents(stores, receiver.url, 13);
  if (late === undefined) throw new Error('There is no event.');
  const { endpoint_id } = toEndpointKey(late);
  // The endpoint hangs: a probe is in progress, and what comes waits for more than ten minutes.
  const limits = createEndpointLimits({ slots: 200, promptSlots: 50 });
  for (let n = 0; n < 5; n += 1) {
    const admission = limits.admit(endpoint_id);
    if (admission.admitted) admission.leave(HUNG);
  }
  const probe = limits.admit(endpoint_id);
  for (let n = 0; n < 50; n += 1) limits.admit(endpoint_id);
  // A try that a busy machine cut off after 5 s would be passed over, and wait over ten minutes.
  const tryNow = (delivery: DeliveryKey) =>
    tryDeliveryNow(patientClient(delivering.env.client), delivery);
  const activities = buildActivities(stores, { limits, tryNow });
  let tries = 0;
  const deliverWebhook: WebhookActivities['deliverWebhook'] = (input) => {
    tries += 1;
    return activities.deliverWebhook(input);
  };
  const worker = await openWorker(delivering, { ...activities, deliverWebhook });
  const readStates = () => Promise.all(events.map(readDelivery));
  await runWhile(worker, async () => {
    const handles = await Promise.all(events.map((event) => startDelivery(delivering, event)));
    const states = await eventually('all wait for the endpoint', async () => {
      const found = await readStates();
      return found.every((state) => state?.waiting === true) && found;
    });
    expect(tries).toBe(events.length);
    for (const state of states) {
      const waitMs = Date.parse(state?.next_attempt_at ?? '') - Date.now();
      expect(waitMs).toBeGreaterThan(9 * 60_000);
    }
    if (probe.admitted) probe.leave();
    for (const handle of [await startDelivery(delivering, late), ...handles]) {
      expect(await readOutcomes(handle)).toEqual(['delivered']);
    }
    expect(tries).toBe(2 * events.length + 1);
    const attempted = events.map(() => ({ attempts: 1 }));
    expect(await readStates()).toMatchObject(attempted);
  });
});

describe('a bundle of workflows, whose modules are evaluated for each run,', () => {
  function listModules(bundle: WorkflowBundleOption): string[] {
    const code = 'code' in bundle ? bundle.code : readFileSync(bundle.codePath, 'utf8');
    const names = [...code.matchAll(/!\*{3} (\.\/\S+)/g)].map(([, name = '']) => name);
    return [...new Set(names)];
  }

  test('has for deliveries the modules that a delivery needs, and no other', async () => {
    const names = listModules((await workflowBundles()).webhooks);
    const isOwn = (name: string) => /^\.\/(src|workflows|activities|connectors)\//.test(name);
    const own = names.filter((name) => isOwn(name) && !name.includes('autogenerated'));
    expect(own.sort()).toEqual([
      './src/domain/events/delivery.ts',
      './src/domain/printable.ts',
      './src/domain/search-attributes.ts',
      './workflows/webhook/delivery.ts',
    ]);
  });

  test('has for lifecycles no delivery, and nowhere the schema library', async () => {
    const { lifecycle, webhooks } = await workflowBundles();
    const names = listModules(lifecycle);
    expect(names).toContain('./workflows/payment/lifecycle.ts');
    expect(names).toContain('./workflows/schedules.ts');
    expect(names.filter((name) => name.includes('workflows/webhook/'))).toEqual([]);
    const isSchema = (name: string) => name.includes('node_modules/zod/');
    expect([...names, ...listModules(webhooks)].filter(isSchema)).toEqual([]);
  });
});

describe('several endpoints', () => {
  /** A merchant's server with an endpoint at each path. */
  const receiver = useFixture(
    async () => {
      const posts: string[] = [];
      const state: { answer: (path: string) => number } = { answer: () => 200 };
      const { port, close } = await receiveHttp((request, response) => {
        request.resume();
        const path = (request.url ?? '').slice(1);
        posts.push(path);
        response.writeHead(state.answer(path)).end();
      });
      return { port, close, posts, state };
    },
    ({ close }) => close(),
  );

  beforeEach(() => {
    receiver.posts.length = 0;
    receiver.state.answer = () => 200;
  });

  /** Records an event to several endpoints, each named by its path. */
  async function openMerchant(count: number) {
    const owner = { account_id: randomUUID(), livemode: false };
    const names = Array.from({ length: count }, (_, slot) => `we_${owner.account_id}_${slot}`);
    for (const [slot, endpoint_id] of names.entries()) {
      const at = new Date(slot).toISOString();
      const ciphertext = await stores.encrypter.encrypt(
        SECRET,
        secretOwner({ ...owner, endpoint_id }),
      );
      await stores.endpoints.insert({
        ...{ ...owner, endpoint_id, slot, position: at, description: null },
        ...{ url: `http://localhost:${receiver.port}/${endpoint_id}`, created_at: at },
        ...{ secrets: [{ ciphertext, active_from: at }], updated_at: at },
      });
    }
    return { names, event: await insertEvent(stores, owner, names) };
  }

  const openQueue = () => ({ env: real.env, taskQueue: `endpoints-${randomUUID()}` });

  const readRows = ({ _id }: EventDocument) => stores.deliveries.forEvents([_id]);
  const readAttempts = async ({ _id }: EventDocument) =>
    listAttempts(await stores.deliveries.readLogs([_id]));

  const buildDeps = (taskQueue: string, now = () => new Date()) => ({
    ...{ stores, temporal: patientClient(real.env.client), webhookQueue: taskQueue, now },
    lifecycleQueue: 'unused',
  });

  /** Whether nothing is in progress but the attempts to these endpoints, each at its own time. */
  async function waitsFor(handle: WorkflowHandle, endpoint_ids: readonly string[]) {
    const { raw } = await handle.describe();
    const activities = raw.pendingActivities ?? [];
    const isWaiting = activities.every(({ attempt }) => Number(attempt) > 1);
    const ids = activities.map(({ activityId }) => activityId);
    return raw.pendingWorkflowTask == null && isWaiting && ids.join() === endpoint_ids.join();
  }

  test('a redelivery to one endpoint goes on in the same workflow, and leaves two that wait', async () => {
    const { names, event } = await openMerchant(3);
    const [waiting = '', again = '', delivered = ''] = names;
    receiver.state.answer = (path) => (path === delivered ? 200 : 500);
    const delivering = openQueue();
    const deps = buildDeps(delivering.taskQueue);
    await runWhile(await openWorker(delivering, buildActivities(stores)), async () => {
      const handle = await startDelivery(delivering, event, { endpoint_ids: names });
      await eventually('the first attempts', async () =>
        (await readRows(event)).every(({ attempts }) => attempts === 1),
      );
      const before = await readRows(event);
      receiver.state.answer = () => 200;
      for (const endpoint_id of [delivered, again]) {
        const [row] = await redeliverEvent(deps, event._id, { endpoint_id });
        expect(row).toMatchObject({ endpoint_id, status: 'pending', run: 1 });
        await eventually('the redelivery', async () =>
          (await readAttempts(event)).some(
            (row) => row.endpoint_id === endpoint_id && row.run === 1,
          ),
        );
      }
      await eventually('what is left', () => waitsFor(handle, [waiting]));
      const redelivered = { status: 'delivered', attempts: 2, run: 1 };
      expect(await readRows(event)).toMatchObject([before[0], redelivered, redelivered]);
      expect(receiver.posts.filter((path) => path === waiting)).toHaveLength(1);
      expect((await handle.describe()).runId).toBe(handle.firstExecutionRunId);
      await redeliverEvent(deps, event._id, { endpoint_id: waiting });
      expect(await handle.result()).toEqual(
        Object.fromEntries(names.map((name) => [name, 'delivered'])),
      );
      await saveHistory(handle, 'webhook-redelivered');
    });
  });

  test('a worker killed between two first attempts leaves the other to the next worker, and repeats none', async () => {
    const { names, event } = await openMerchant(2);
    const delivering = openQueue();
    const { taskQueue } = delivering;
    const handle = await startDelivery(delivering, event, { endpoint_ids: names });
    // This worker takes the first task, stores one attempt, and is never heard of again.
    const { client } = real.env;
    const { namespace, identity } = client.options;
    const poll = { namespace, identity, taskQueue: { name: taskQueue } };
    await client.withDeadline(Date.now() + 60_000, () =>
      client.workflowService.pollWorkflowTaskQueue(poll),
    );
    const activities = buildActivities(stores);
    const [endpoint_id = ''] = names;
    const input = { ...buildInput(event), endpoint_id };
    expect(await mockActivityEnvironment().run(activities.deliverWebhook, input)).toBe('delivered');
    await runWhile(await openWorker(delivering, activities), async () => {
      expect(Object.values(await handle.result())).toEqual(['delivered', 'delivered']);
    });
    expect(receiver.posts.toSorted()).toEqual(names);
    expect(await readRows(event)).toMatchObject(names.map(() => ({ attempts: 1 })));
  });

  test('the restart of one delivery whose workflow is lost continues all deliveries of its event', async () => {
    const { names, event } = await openMerchant(2);
    receiver.state.answer = () => 500;
    const delivering = openQueue();
    const deps = buildDeps(delivering.taskQueue, () => new Date(Date.now() + 10 * 60_000));
    await runWhile(await openWorker(delivering, buildActivities(stores)), async () => {
      const { workflowId } = await startDelivery(delivering, event, { endpoint_ids: names });
      const handle = real.env.client.workflow.getHandle(workflowId);
      await eventually('the first attempts', async () =>
        (await readRows(event)).every(({ attempts }) => attempts === 1),
      );
      await handle.terminate('lost');
      const lost: DeliveryOrphan[] = [];
      for await (const { orphans } of findDeliveries(deps, [event._id])) lost.push(...orphans);
      expect(lost).toHaveLength(2);
      for (const orphan of lost.slice(0, 1)) await restart(deps, orphan);
      await eventually('both activities', async () => {
        return (await handle.describe()).raw.pendingActivities?.length === 2;
      });
      await handle.terminate('end of test');
    });
  });

  test('a redelivery that was lost before its update is made by the audit while the workflow runs for others', async () => {
    const { names, event } = await openMerchant(2);
    const [waiting = '', lost = ''] = names;
    receiver.state.answer = (path) => (path === lost ? 200 : 500);
    const delivering = openQueue();
    const now = () => new Date(Date.now() + 10 * 60_000);
    const deps = buildDeps(delivering.taskQueue, now);
    await runWhile(await openWorker(delivering, buildActivities(stores)), async () => {
      const handle = await startDelivery(delivering, event, { endpoint_ids: names });
      await eventually('the one that waits', () => waitsFor(handle, [waiting]));
      const row = (await readRows(event)).find(({ endpoint_id }) => endpoint_id === lost);
      if (row === undefined) throw new Error('There is no delivery.');
      await stores.deliveries.reserveRun(row, new Date().toISOString());
      const tried: string[] = [];
      const onLate = async ({ endpoint_id }: { endpoint_id: string }) => tried.push(endpoint_id);
      for await (const { orphans } of findLateDeliveries(deps, undefined, onLate)) {
        for (const orphan of orphans.filter(({ delivery }) => delivery.event_id === event._id)) {
          expect(orphan).toMatchObject({ workflow: 'RUNNING', delivery: { endpoint_id: lost } });
          await restart(deps, orphan);
        }
      }
      expect(tried).toContain(waiting);
      await eventually('the redelivery', async () =>
        (await readAttempts(event)).some(
          ({ endpoint_id, run }) => endpoint_id === lost && run === 1,
        ),
      );
      expect(receiver.posts.toSorted()).toEqual([waiting, lost, lost]);
      await handle.terminate('end of test');
    });
  });

  test('a redelivery that comes as the workflow ends is made', async () => {
    const delivering = openQueue();
    const deps = buildDeps(delivering.taskQueue);
    const race = async () => {
      const { names, event } = await openMerchant(1);
      const handle = await startDelivery(delivering, event, { endpoint_ids: names });
      const posted = async () => receiver.posts.includes(names[0] ?? '');
      await Promise.all([
        handle.result().catch(() => undefined),
        eventually('the first attempt', posted).then(() => redeliverEvent(deps, event._id)),
      ]);
      await eventually('an attempt of the next run', async () =>
        (await readAttempts(event)).some(({ run }) => run === 1),
      );
      const current = real.env.client.workflow.getHandle(handle.workflowId);
      await eventually(
        'the end',
        async () => (await current.describe()).status.name === 'COMPLETED',
      );
    };
    await runWhile(await openWorker(delivering, buildActivities(stores)), () =>
      Promise.all(Array.from({ length: 10 }, race)),
    );
  });
});
