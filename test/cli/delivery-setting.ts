import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createWebhookActivities } from '../../activities/webhooks/deliver';
import { webhookWorkflowId } from '../../src/domain/webhook/event';
import { createEncrypter } from '../../src/encryption/encrypter';
import { followKeyFile } from '../../src/encryption/service-keys';
import { tryDeliveryNow } from '../../src/service/events/deliveries';
import type { EventDelivery, EventDocument } from '../../src/store/events';
import { createEndpointLimits } from '../../src/webhooks/endpoint-limits';
import { postWebhook } from '../../src/webhooks/post';
import { useFixture } from '../support/fixture';
import { readPayloads } from '../support/histories';
import { openInbox } from '../support/hook';
import { retryUntilDone } from '../support/insist';
import { quietTemporal } from '../support/quiet';
import { runWhile } from '../support/run-while';
import { temporalAddress } from '../support/servers';
import { openAccount } from '../support/service';
import { openProvisioning } from './cli';
import { recordEvents, registerEndpoint } from './event-log';
import { patientClient } from './resource-setting';

export type DeliverySetting = Awaited<ReturnType<typeof openDeliverySetting>>;

/** A command line, a merchant's receiver, and a worker for deliveries while a test needs one. */
async function openDeliverySetting() {
  quietTemporal();
  const service = await openProvisioning();
  const connection = await Connection.connect({
    address: temporalAddress(),
    connectTimeout: '2 minutes',
  });
  const temporal = new Client({ connection });
  const inbox = await openInbox();
  const { stores } = service;
  for (const store of [stores.accounts, stores.keys, stores.endpoints, stores.events]) {
    await retryUntilDone(() => store.ensureIndexes());
  }
  const webhookQueue = `webhooks-${randomUUID()}`;
  const getDelivery = ({ _id }: EventDocument) =>
    temporal.workflow.getHandle(webhookWorkflowId(_id));
  return {
    service,
    temporal,
    inbox,
    /** Bodies that were posted. */
    bodies: () => inbox.received.map(({ body }) => body),
    getDelivery,
    /** Dependencies on a queue that nobody else works on. */
    deps: {
      stores,
      temporal: patientClient(temporal),
      webhookQueue,
      lifecycleQueue: `lifecycle-${randomUUID()}`,
      now: () => new Date(),
    },
    /** An event of a new merchant with an endpoint, with this state of its delivery. */
    event: async (state: Omit<EventDelivery, 'run'>): Promise<EventDocument> => {
      const { account_id } = await openAccount(stores, {});
      await registerEndpoint(service, account_id, inbox.url);
      const [event] = await recordEvents(service, account_id, ['payment.settled']);
      if (event === undefined) throw new Error('No event was recorded.');
      await stores.events.setDelivery(event._id, state);
      return { ...event, delivery: { ...state, run: 0 } };
    },
    /** State of the delivery, which goes to the one endpoint. */
    readState: async ({ _id }: EventDocument) => {
      const event = await stores.events.get(_id);
      if (event === null) return undefined;
      const { endpoint_id: _, ...delivery } = event.delivery;
      return delivery;
    },
    /** Input with which the running delivery was started. */
    readInput: async ({ _id }: EventDocument) =>
      (await readPayloads(temporal, webhookWorkflowId(_id))).input,
    /** Runs a worker for deliveries while `work` is done. */
    working: async (work: () => Promise<void>): Promise<void> => {
      const native = await NativeConnection.connect({ address: temporalAddress() });
      const worker = await Worker.create({
        connection: native,
        taskQueue: webhookQueue,
        workflowsPath: require.resolve('../../workflows/webhook/delivery'),
        activities: createWebhookActivities({
          ...stores,
          encrypter: createEncrypter(followKeyFile(service.env['KEYS_FILE'] ?? '').seal),
          limits: createEndpointLimits({ slots: 200 }),
          allowPrivate: true,
          post: postWebhook,
          now: Date.now,
          random: () => 0.5,
          log: { info: () => undefined, warn: () => undefined },
          health: { note: async () => undefined },
          tryNow: (id) => tryDeliveryNow(temporal, id),
        }),
      });
      try {
        await runWhile(worker, work);
      } finally {
        await native.close();
      }
    },
    close: async () => {
      await inbox.close();
      await connection.close();
      await service.close();
    },
  };
}

/** A receiver and a command line for one file's tests; each begins with a receiver that accepts. */
export function useDeliverySetting(): DeliverySetting {
  const setting = useFixture(openDeliverySetting, (opened) => opened.close());
  beforeEach(() => setting.inbox.clear());
  return setting;
}
