import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { redeliverEvent } from '../../../src/service/events/redeliver';
import { findLateDeliveries, restart } from '../../../src/service/operators/reconcile/orphans';
import { listAttempts } from '../../../src/store/deliveries';
import { secretOwner } from '../../../src/store/endpoints';
import type { EventDocument } from '../../../src/store/events';
import { patientClient } from '../../cli/resource-setting';
import { useFixture } from '../../support/fixture';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { mockActivityEnvironment } from '../../support/quiet';
import { runWhile } from '../../support/run-while';
import { receiveHttp } from '../../webhooks/receiver';
import {
  buildActivities,
  buildInput,
  insertEvent,
  openWorker,
  SECRET,
  startDelivery,
  useRealServer,
  useStores,
} from './setting';

const stores = useStores();
const real = useRealServer();

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
        (await readAttempts(event)).some((row) => row.endpoint_id === endpoint_id && row.run === 1),
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
      (await readAttempts(event)).some(({ endpoint_id, run }) => endpoint_id === lost && run === 1),
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
    await eventually('the end', async () => (await current.describe()).status.name === 'COMPLETED');
  };
  await runWhile(await openWorker(delivering, buildActivities(stores)), () =>
    Promise.all(Array.from({ length: 10 }, race)),
  );
});
