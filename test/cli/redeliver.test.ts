import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createWebhookActivities } from '../../activities/webhooks';
import { redeliverEvent } from '../../src/cli/redeliver';
import { readKeys } from '../../src/config';
import { webhookWorkflowId } from '../../src/domain/event';
import { createSealer } from '../../src/keys/seal';
import type { EventDocument } from '../../src/store/events';
import { postWebhook } from '../../src/webhooks/post';
import { temporalAddress } from '../support/servers';
import { type Receiver, receiveHttp } from '../webhooks/receiver';
import { openProvisioning, type Provisioning, run } from './cli';
import { recordEvents, registerEndpoint } from './event-log';

let service: Provisioning;
let temporal: Client;
let receiver: Receiver;
let answer: number;
const bodies: string[] = [];

beforeAll(async () => {
  Runtime.install({ shutdownSignals: [], logger: new DefaultLogger('ERROR') });
  service = await openProvisioning();
  temporal = new Client({ connection: await Connection.connect({ address: temporalAddress() }) });
  receiver = await receiveHttp((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      bodies.push(body);
      response.writeHead(answer).end();
    });
  });
});
beforeEach(() => {
  answer = 200;
  bodies.length = 0;
});
afterAll(async () => {
  await receiver.close();
  await temporal.connection.close();
  await service.close();
});

/** An event whose first delivery has long ended, as the server has forgotten it. */
async function exhaustedEvent(): Promise<EventDocument> {
  const { account_id } = await service.account();
  await registerEndpoint(service, account_id, receiver.url);
  const [event] = await recordEvents(service, account_id, ['payment.settled']);
  if (event === undefined) throw new Error('No event was recorded.');
  const ended = { status: 'exhausted', attempts: 12, next_attempt_at: null } as const;
  await service.stores.events.setDelivery(event._id, ended);
  return { ...event, delivery: { ...ended, run: 0 } };
}

/** What the delivery that runs was started with. */
async function inputOf(event: EventDocument) {
  const [first] = (await handleOf(event).fetchHistory()).events ?? [];
  const input = first?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]?.data;
  return JSON.parse(String(input ?? 'null'));
}

async function deliveryOf({ _id }: EventDocument) {
  return (await service.stores.events.get(_id))?.delivery;
}

function handleOf({ _id }: EventDocument) {
  return temporal.workflow.getHandle(webhookWorkflowId(_id));
}

test('a redelivery posts the same bytes again under the next run number, as often as asked', async () => {
  const event = await exhaustedEvent();
  const webhookQueue = `webhooks-${randomUUID()}`;
  const { stores } = service;
  const redeliver = () =>
    redeliverEvent({ stores, temporal, webhookQueue, now: () => new Date() }, event._id);
  await workingOn(webhookQueue, async () => {
    expect((await redeliver()).delivery).toMatchObject({ status: 'pending', run: 1 });
    expect(await handleOf(event).result()).toEqual({ outcome: 'delivered' });
    await redeliver();
    await handleOf(event).result();
  });
  expect(bodies).toEqual([event.body, event.body]);
  expect(await deliveryOf(event)).toMatchObject({ status: 'delivered', run: 2 });
  const rows = await stores.deliveries.forEvent(event._id);
  expect(rows.map(({ run: number, attempt }) => [number, attempt])).toEqual([
    [2, 1],
    [1, 1],
  ]);
});

test('it is refused while a delivery is under way, and changes nothing then', async () => {
  const event = await exhaustedEvent();
  expect(await service.json('event', 'redeliver', event._id)).toEqual({
    event_id: event._id,
    status: 'pending',
  });
  const before = await deliveryOf(event);
  expect(before).toMatchObject({ status: 'pending', attempts: 12, run: 1 });
  const refused = await service.refusal('event', 'redeliver', event._id);
  expect(refused).toEqual({
    code: 'delivery_running',
    message: expect.stringMatching(
      /is still under way, 12 attempts made\. The next attempt is due/,
    ),
  });
  expect(await deliveryOf(event)).toEqual(before);
  await handleOf(event).terminate('end of test');
  const again = await service.cli('event', 'redeliver', event._id);
  expect(again.stdout).toContain(`${event._id} is being sent again`);
  expect(await deliveryOf(event)).toMatchObject({ run: 2 });
  await handleOf(event).terminate('end of test');
});

test('of several asked for at once one starts', async () => {
  const event = await exhaustedEvent();
  const runs = await Promise.all(
    Array.from({ length: 5 }, () => service.cli('event', 'redeliver', event._id)),
  );
  expect(runs.map(({ exit }) => exit).sort()).toEqual([0, 1, 1, 1, 1]);
  const started = await inputOf(event);
  expect(started).toMatchObject({ event_id: event._id });
  // The number is the second when one read the event between the first one's claim and its start.
  expect(await deliveryOf(event)).toMatchObject({ status: 'pending', run: started.run });
  await handleOf(event).terminate('end of test');
});

test('it is refused without an endpoint, also for an event that never had one', async () => {
  const { account_id } = await service.account();
  const [event] = await recordEvents(service, account_id, ['payment.settled'], false);
  const id = event?._id ?? '';
  expect(await service.refusal('event', 'redeliver', id)).toEqual({
    code: 'webhook_not_set',
    message: `Nothing to send it to: no sandbox webhook endpoint is registered for ${account_id}.`,
  });
  await registerEndpoint(service, account_id, receiver.url);
  expect(await service.json('event', 'redeliver', id)).toEqual({ event_id: id, status: 'pending' });
  await temporal.workflow.getHandle(webhookWorkflowId(id)).terminate('end of test');
});

test('it leaves the event as it was when Temporal is away or refuses', async () => {
  const event = await exhaustedEvent();
  const redeliver = ['event', 'redeliver', event._id];
  const startedAt = performance.now();
  const away = await run({ ...service.env, TEMPORAL_ADDRESS: '127.0.0.1:1' }, ...redeliver);
  expect(performance.now() - startedAt).toBeLessThan(4_000);
  expect(away.exit).toBe(1);
  expect(away.stderr).toContain('Temporal does not answer at 127.0.0.1:1 (address from the env');
  const elsewhere = { ...service.env, TEMPORAL_NAMESPACE: 'nowhere' };
  const refused = await run(elsewhere, ...redeliver, '--json');
  expect(refused.stderr).toContain('"code":"temporal_unavailable"');
  expect(await deliveryOf(event)).toEqual(event.delivery);
});

test('it puts the state back when the start itself is refused', async () => {
  const event = await exhaustedEvent();
  const { stores } = service;
  // A name that no server takes.
  const deps = { stores, temporal, webhookQueue: 'q'.repeat(5_000), now: () => new Date() };
  await expect(redeliverEvent(deps, event._id)).rejects.toMatchObject({
    code: 'temporal_unavailable',
  });
  expect(await deliveryOf(event)).toEqual({ ...event.delivery, run: 1 });
});

/** Runs a worker for deliveries while `work` is done. */
async function workingOn(taskQueue: string, work: () => Promise<void>): Promise<void> {
  const connection = await NativeConnection.connect({ address: temporalAddress() });
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowsPath: require.resolve('../../workflows/webhook/delivery'),
    activities: createWebhookActivities({
      ...service.stores,
      sealer: createSealer(readKeys(service.env['KEYS_FILE'] ?? '').seal),
      allowPrivate: true,
      post: postWebhook,
      now: Date.now,
      random: () => 0.5,
      log: { info: () => undefined, warn: () => undefined },
    }),
  });
  try {
    await worker.runUntil(work());
  } finally {
    await connection.close();
  }
}
