import { tryDeliveryNow } from '../../../src/service/events/deliveries';
import { findLateDeliveries } from '../../../src/service/orphans';
import { createStores } from '../../../src/store';
import { firstEndpointId } from '../../../src/store/endpoints';
import type { EventDocument } from '../../../src/store/events';
import { createEndpointLimits, type EndpointLimits } from '../../../src/webhooks/endpoint-limits';
import type { PostResult } from '../../../src/webhooks/post-result';
import { patientClient } from '../../cli/resource-setting';
import { eventually } from '../../support/http';
import { runWhile } from '../../support/run-while';
import { useReceivers } from '../../webhooks/posting';
import {
  activitiesOn,
  type Delivering,
  inputOf,
  recordEvents,
  startDelivery,
  useRealServer,
  useStores,
  workerOn,
} from './setting';

const HUNG: PostResult = { outcome: 'error', kind: 'timeout', message: '', durationMs: 10_000 };
const EVENTS = 12;
/** Probes that others have reserved: what comes then waits for more than ten minutes. */
const RESERVED = 50;

const server = useRealServer();
const stores = useStores();
const receivers = useReceivers();

beforeEach(async () => {
  await stores.db.collection('events').deleteMany({});
});

/** A try that a busy machine cut off after 5 s would be passed over, and wait over ten minutes. */
const tryPatiently = ({ env }: Delivering, id: string) =>
  tryDeliveryNow(patientClient(env.client), id);

/**
 * A worker that counts its tries.
 * @param endpoint_id it knows that this one hangs: a probe is under way, and others are to follow
 */
async function openWorker(
  delivering: Delivering,
  endpoint_id: string | null,
  tryNow = (id: string) => tryPatiently(delivering, id),
) {
  const limits = createEndpointLimits({ slots: 200, promptSlots: 50 });
  const probe = endpoint_id === null ? undefined : occupy(limits, endpoint_id);
  const tries = { count: 0 };
  const activities = activitiesOn(stores, { limits, tryNow });
  const worker = await workerOn(delivering, {
    ...activities,
    deliverWebhook: (input) => {
      tries.count += 1;
      return activities.deliverWebhook(input);
    },
  });
  return { worker, tries, endProbe: () => probe?.leave() };
}

function occupy(limits: EndpointLimits, endpoint_id: string) {
  for (let n = 0; n < 5; n += 1) {
    const admission = limits.admit(endpoint_id);
    if (admission.admitted) admission.leave(HUNG);
  }
  const probe = limits.admit(endpoint_id);
  for (let n = 0; n < RESERVED; n += 1) limits.admit(endpoint_id);
  return probe.admitted ? probe : undefined;
}

const stateOf = async ({ _id }: EventDocument) => (await stores.events.get(_id))?.delivery;

/** Starts deliveries, and waits until all of them wait for the endpoint. */
async function startAll(delivering: Delivering, events: readonly EventDocument[], owner: string) {
  const handles = await Promise.all(events.map((event) => startDelivery(delivering, event)));
  await eventually('all wait for the endpoint', async () => {
    const states = await Promise.all(events.map(stateOf));
    return states.every((state) => state?.waiting_for === owner);
  });
  return handles;
}

/** Events of a merchant whose endpoint hangs, and one that comes once it has recovered. */
async function openMerchant(taskQueue: string, status = 200) {
  const delivering: Delivering = { env: server.env, taskQueue };
  let answers = 0;
  const receiver = await receivers.http((request, response) => {
    request.resume();
    answers += 1;
    response.writeHead(status).end();
  });
  const [late, ...events] = await recordEvents(stores, receiver.url, EVENTS + 1);
  if (late === undefined) throw new Error('There is no event.');
  const endpoint_id = firstEndpointId(late.account_id, false);
  return { delivering, events, late, endpoint_id, answers: () => answers };
}

test('what waits for an endpoint that hangs makes one try, and leaves with its first answer', async () => {
  const { delivering, events, late, endpoint_id } = await openMerchant('webhooks-waiting');
  const { worker, tries, endProbe } = await openWorker(delivering, endpoint_id);
  await runWhile(worker, async () => {
    const handles = await startAll(delivering, events, endpoint_id);
    expect(tries.count).toBe(EVENTS);
    for (const state of await Promise.all(events.map(stateOf))) {
      const waitMs = Date.parse(state?.next_attempt_at ?? '') - Date.now();
      expect(waitMs).toBeGreaterThan(9 * 60_000);
    }
    endProbe();
    const probe = await startDelivery(delivering, late);
    for (const handle of [probe, ...handles]) {
      expect(await handle.result()).toEqual({ outcome: 'delivered' });
    }
    expect(tries.count).toBe(2 * EVENTS + 1);
  });
  for (const state of await Promise.all(events.map(stateOf))) {
    expect(state).toMatchObject({ status: 'delivered', attempts: 1, next_attempt_at: null });
    expect(state).not.toHaveProperty('waiting_for');
  }
});

test('an answer with an error starts the rest too, and each goes on by its own schedule', async () => {
  const { delivering, events, late, endpoint_id } = await openMerchant('webhooks-errors', 500);
  const { worker, endProbe } = await openWorker(delivering, endpoint_id);
  await runWhile(worker, async () => {
    const handles = await startAll(delivering, events, endpoint_id);
    endProbe();
    const probe = await startDelivery(delivering, late);
    await eventually('each has an attempt', async () => {
      const states = await Promise.all(events.map(stateOf));
      return states.every((state) => state?.attempts === 1 && state.waiting_for === undefined);
    });
    const rows = await stores.deliveries.forEvent(events.at(-1)?._id ?? '');
    expect(rows.map(({ attempt, status_code }) => [attempt, status_code])).toEqual([[1, 500]]);
    await Promise.all([probe, ...handles].map((handle) => handle.terminate()));
  });
});

test('what a killed worker was about to start is late: the audit tries it, and the rest follows', async () => {
  const { delivering, events, late, endpoint_id } = await openMerchant('webhooks-killed');
  const killed = await openWorker(delivering, endpoint_id, () =>
    Promise.reject(new Error('killed')),
  );
  const handles = await runWhile(killed.worker, async () => {
    const started = await startAll(delivering, events, endpoint_id);
    killed.endProbe();
    const probe = await startDelivery(delivering, late);
    expect(await probe.result()).toEqual({ outcome: 'delivered' });
    return started;
  });
  const states = await Promise.all(events.map(stateOf));
  const lost = states.findIndex((state) => state?.waiting_for === undefined);
  const next_attempt_at = states[lost]?.next_attempt_at;
  const deps = {
    ...{ stores: createStores(stores.db), temporal: server.env.client },
    ...{ lifecycleQueue: 'unused', webhookQueue: delivering.taskQueue },
    now: () => new Date(Date.parse(next_attempt_at ?? '') + 61_000),
  };
  const next = await openWorker(delivering, null);
  await runWhile(next.worker, async () => {
    const tried: string[] = [];
    const onLate = async (id: string) => {
      tried.push(id);
      await tryPatiently(delivering, id);
    };
    const batches = findLateDeliveries(deps, undefined, onLate);
    for await (const { orphans } of batches) expect(orphans).toEqual([]);
    expect(tried).toEqual([events[lost]?._id]);
    for (const handle of handles) expect(await handle.result()).toEqual({ outcome: 'delivered' });
  });
});

test('a test event waits a minute at most: a merchant tries the endpoint with it', async () => {
  const { delivering, events, endpoint_id } = await openMerchant('webhooks-test-event');
  const [event] = events;
  if (event === undefined) throw new Error('There is no event.');
  const { worker, tries } = await openWorker(delivering, endpoint_id);
  await runWhile(worker, async () => {
    const handle = await server.env.client.workflow.start('webhookDelivery', {
      workflowId: `webhook:${event._id}`,
      taskQueue: delivering.taskQueue,
      args: [{ ...inputOf(event, 0), attempts_max: 1 }],
    });
    await eventually('a try', async () => tries.count === 1);
    const nextAt = await eventually('the wait', async () => {
      const { raw } = await handle.describe();
      return raw.pendingActivities?.[0]?.nextAttemptScheduleTime?.seconds;
    });
    expect(Number(nextAt) - Date.now() / 1_000).toBeLessThanOrEqual(60);
    expect(await stateOf(event)).not.toHaveProperty('waiting_for');
    await handle.terminate();
  });
});
