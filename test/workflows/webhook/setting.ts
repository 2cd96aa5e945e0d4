import { randomBytes, randomUUID } from 'node:crypto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { createWebhookActivities } from '../../../activities/webhooks/deliver';
import type { WebhookActivityDeps } from '../../../activities/webhooks/next-attempt';
import { connectMongo } from '../../../src/base/mongo';
import type { WebhookDeliveryInput } from '../../../src/domain/webhook/delivery';
import { webhookWorkflowId } from '../../../src/domain/webhook/event';
import { createEncrypter, type Encrypter } from '../../../src/encryption/encrypter';
import { createAccountStore } from '../../../src/store/accounts';
import { createDeliveryStore } from '../../../src/store/deliveries';
import { createEndpointStore, endpointOwner } from '../../../src/store/endpoints';
import { createEventStore, type EventDocument } from '../../../src/store/events';
import { createEndpointLimits } from '../../../src/webhooks/endpoint-limits';
import { postWebhook } from '../../../src/webhooks/post';
import { webhookDelivery } from '../../../workflows/webhook/delivery';
import { useFixture } from '../../support/fixture';
import { retryUntilDone } from '../../support/insist';
import { quietTemporal } from '../../support/quiet';
import { mongodbUri, temporalAddress } from '../../support/servers';

// Once a test file: failed attempts are what is tested, not news.
quietTemporal();

export const SECRET = 'whsec_of_the_sandbox_endpoint';

/** MongoDB, stores and sealer of one test file, in a database of its own. */
async function openStores() {
  const mongo = await connectMongo(mongodbUri(), 'webhook-test');
  const db = mongo.db(`webhooks_${randomUUID()}`);
  const stores = {
    accounts: createAccountStore(db),
    events: createEventStore(db),
    deliveries: createDeliveryStore(db),
    endpoints: createEndpointStore(db),
    sealer: createEncrypter({ current: 'k1', keys: { k1: randomBytes(32) } }),
  };
  for (const store of [stores.events, stores.endpoints]) {
    await retryUntilDone(() => store.ensureIndexes());
  }
  const close = async () => {
    await retryUntilDone(() => db.dropDatabase());
    await mongo.close();
  };
  return { ...stores, db, close };
}

export type Stores = Awaited<ReturnType<typeof openStores>>;

export function useStores(): Stores {
  return useFixture(openStores, ({ close }) => close());
}

/** The real server, in an environment for one file's tests. */
export function useRealServer(): { env: TestWorkflowEnvironment } {
  return useFixture(
    async () => ({
      env: await TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress() }),
    }),
    ({ env }) => env.teardown(),
  );
}

/** An event that was recorded and is to be delivered, for an account that has an endpoint. */
export async function recordEvent(stores: Stores, url: string | null, livemode = false) {
  const account_id = randomUUID();
  if (url !== null) await setEndpoint(stores, account_id, url, livemode);
  const event = eventOf(account_id, livemode);
  await stores.db.collection<EventDocument>('events').insertOne(event);
  return event;
}

/** Several events of one account. */
export async function recordEvents(stores: Stores, url: string, count: number) {
  const account_id = randomUUID();
  await setEndpoint(stores, account_id, url, false);
  const events = Array.from({ length: count }, () => eventOf(account_id, false));
  await stores.db.collection<EventDocument>('events').insertMany(events);
  return events;
}

async function setEndpoint(
  { endpoints, sealer }: { endpoints: Stores['endpoints']; sealer: Encrypter },
  account_id: string,
  url: string,
  livemode: boolean,
): Promise<void> {
  const sealed = await sealer.encrypt(SECRET, endpointOwner(account_id, livemode));
  // Long ago, so that it signs also by a clock that tests have moved.
  await endpoints.set({ account_id, livemode, url, sealed, now: new Date(0) });
}

function eventOf(account_id: string, livemode: boolean): EventDocument {
  const _id = `evt_${randomUUID()}`;
  return {
    _id,
    account_id,
    livemode,
    type: 'payment.settled',
    created: '2026-03-01T12:00:00.000Z',
    resource_id: randomUUID(),
    position: _id,
    data: { payment_id: 'p1' },
    body: `{"id":"${_id}","type":"payment.settled","note":"Zoë"}`,
    request_id: 'req_1',
    delivery: { status: 'pending', attempts: 0, next_attempt_at: null, run: 0 },
  };
}

/** The worker's activities, on the real stores and the real network. */
export function activitiesOn(stores: Stores, changes: Partial<WebhookActivityDeps> = {}) {
  return createWebhookActivities({
    ...stores,
    encrypter: stores.sealer,
    limits: createEndpointLimits({ slots: 200, promptSlots: 50 }),
    allowPrivate: true,
    post: postWebhook,
    now: Date.now,
    random: () => 0.5,
    log: { info: () => undefined, warn: () => undefined },
    health: { note: async () => undefined },
    tryNow: async () => false,
    ...changes,
  });
}

export interface Delivering {
  env: TestWorkflowEnvironment;
  taskQueue: string;
}

export function workerOn(
  { env, taskQueue }: Delivering,
  activities: ReturnType<typeof createWebhookActivities>,
  slots = 200,
): Promise<Worker> {
  return Worker.create({
    connection: env.nativeConnection,
    taskQueue,
    workflowsPath: require.resolve('../../../workflows/webhook/delivery'),
    activities,
    maxConcurrentActivityTaskExecutions: slots,
  });
}

export function inputOf(event: EventDocument, run: number): WebhookDeliveryInput {
  const { _id, request_id, account_id, livemode, type, body } = event;
  return { event_id: _id, run, request_id, event: { account_id, livemode, type, body } };
}

/** Starts the delivery as `recordMove` does for run 0, and a redelivery for later runs. */
export function startDelivery({ env, taskQueue }: Delivering, event: EventDocument, run = 0) {
  return env.client.workflow.start(webhookDelivery, {
    workflowId: webhookWorkflowId(event._id),
    taskQueue,
    args: [inputOf(event, run)],
    workflowIdReusePolicy: run === 0 ? 'REJECT_DUPLICATE' : 'ALLOW_DUPLICATE',
  });
}
