import { randomBytes, randomUUID } from 'node:crypto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import {
  createWebhookActivities,
  type WebhookActivities,
} from '../../../activities/webhooks/deliver';
import type { WebhookActivityDeps } from '../../../activities/webhooks/record';
import { connectMongo } from '../../../src/base/mongo';
import type {
  EndpointDeliveryInput,
  WebhookDeliveryInput,
} from '../../../src/domain/events/delivery';
import { webhookWorkflowId } from '../../../src/domain/events/event';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { createStores } from '../../../src/store';
import { buildDelivery } from '../../../src/store/deliveries';
import { secretOwner } from '../../../src/store/endpoints';
import type { EventDocument } from '../../../src/store/events';
import { createEndpointLimits } from '../../../src/webhooks/endpoint-limits';
import { postWebhook } from '../../../src/webhooks/post';
import { webhookDelivery } from '../../../workflows/webhook/delivery';
import { workflowBundles } from '../../support/bundle';
import { retryUntilDone } from '../../support/eventually';
import { useFixture } from '../../support/fixture';
import { quietTemporal } from '../../support/quiet';
import { mongodbUri, temporalAddress } from '../../support/servers';

// Once a test file: failed attempts are what is tested, not news.
quietTemporal();

export const SECRET = 'whsec_of_the_sandbox_endpoint';

/** MongoDB, stores and encrypter of one test file, in a database of its own. */
async function openStores() {
  const mongo = await connectMongo(mongodbUri(), 'webhook-test');
  const db = mongo.db(`webhooks_${randomUUID()}`);
  const stores = createStores(db);
  for (const store of [stores.events, stores.deliveries, stores.endpoints]) {
    await retryUntilDone(() => store.ensureIndexes());
  }
  const encrypter = createEncrypter({ current: 'k1', keys: { k1: randomBytes(32) } });
  const close = async () => {
    await retryUntilDone(() => db.dropDatabase());
    await mongo.close();
  };
  return { ...stores, encrypter, db, close };
}

export type TestStores = Awaited<ReturnType<typeof openStores>>;

export const useStores = (): TestStores => useFixture(openStores, ({ close }) => close());

/** The real server, in an environment for one file's tests. */
export const useRealServer = (): { env: TestWorkflowEnvironment } =>
  useFixture(
    async () => ({
      env: await TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress() }),
    }),
    ({ env }) => env.teardown(),
  );

/** Records an event that is to be delivered, of an account with an endpoint if there is a URL. */
export async function recordEvent(
  stores: TestStores,
  url: string | null,
  livemode = false,
): Promise<EventDocument> {
  const account_id = randomUUID();
  if (url !== null) await setEndpoint(stores, { account_id, livemode }, url);
  return await insertEvent(stores, { account_id, livemode });
}

/** Records several events of one account. */
export async function recordEvents(stores: TestStores, url: string, count: number) {
  const owner = { account_id: randomUUID(), livemode: false };
  await setEndpoint(stores, owner, url);
  return await Promise.all(Array.from({ length: count }, () => insertEvent(stores, owner)));
}

type Owner = Pick<EventDocument, 'account_id' | 'livemode'>;

/** The only endpoint of an account. */
export function toEndpointKey({ account_id, livemode }: Owner) {
  return { account_id, livemode, endpoint_id: `we_${account_id}` };
}

/** Sets the endpoint of an account; one that is new signs with `SECRET`. */
export async function setEndpoint(
  { endpoints, encrypter }: TestStores,
  { account_id, livemode }: Owner,
  url: string,
): Promise<void> {
  const key = toEndpointKey({ account_id, livemode });
  const ciphertext = await encrypter.encrypt(SECRET, secretOwner(key));
  // Long ago, so that it signs also by a clock that tests have advanced.
  await endpoints.set({ ...key, url, ciphertext, now: new Date(0) });
}

/** @param endpoint_ids of the deliveries: by default the only one of the account */
export async function insertEvent(
  { events, deliveries }: TestStores,
  owner: Owner,
  endpoint_ids = [toEndpointKey(owner).endpoint_id],
): Promise<EventDocument> {
  const _id = `evt_${randomUUID()}`;
  const event: EventDocument = {
    _id,
    ...owner,
    type: 'payment.settled',
    created: '2026-03-01T12:00:00.000Z',
    ...{ resource_id: randomUUID(), position: _id, data: { payment_id: 'p1' } },
    body: `{"id":"${_id}","type":"payment.settled","note":"Zoë"}`,
    request_id: 'req_1',
    order: 0,
  };
  await events.insert([event]);
  await deliveries.insert(endpoint_ids.map((id) => buildDelivery(event, id, 'pending')));
  return event;
}

/** Builds the worker's activities, on the real stores and the real network. */
export function buildActivities(stores: TestStores, changes: Partial<WebhookActivityDeps> = {}) {
  return createWebhookActivities({
    ...stores,
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

export const openWorker = async (
  { env, taskQueue }: Delivering,
  activities: WebhookActivities,
): Promise<Worker> =>
  await Worker.create({
    connection: env.nativeConnection,
    taskQueue,
    workflowBundle: (await workflowBundles()).webhooks,
    activities,
    maxConcurrentActivityTaskExecutions: 200,
  });

/** Builds the input of an activity. */
export function buildInput(event: EventDocument, run = 0): EndpointDeliveryInput {
  const { _id, request_id, account_id, livemode, type, body } = event;
  const { endpoint_id } = toEndpointKey(event);
  const delivered = { account_id, livemode, type, body };
  return { event_id: _id, endpoint_id, run, request_id, event: delivered };
}

/** Starts the delivery to the only endpoint, or to those named, as a transition does. */
export function startDelivery(
  { env, taskQueue }: Delivering,
  event: EventDocument,
  {
    endpoint_ids,
    ...more
  }: Pick<WebhookDeliveryInput, 'attempts_max'> & { endpoint_ids?: readonly string[] } = {},
) {
  const { endpoint_id: only, run, ...input } = buildInput(event);
  const endpoints = (endpoint_ids ?? [only]).map((endpoint_id) => ({ endpoint_id, run }));
  return env.client.workflow.start(webhookDelivery, {
    workflowId: webhookWorkflowId(event._id),
    taskQueue,
    args: [{ ...input, ...more, endpoints }],
  });
}
