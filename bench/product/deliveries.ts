import { Client } from '@temporalio/client';
import { createLogger } from '../../src/base/log';
import { ENVIRONMENTS } from '../../src/domain/environment';
import { webhookWorkflowId } from '../../src/domain/events/event';
import { WEBHOOK_QUEUE } from '../../src/domain/task-queues';
import { followKeyFile } from '../../src/encryption/service-keys';
import { startDeliveries } from '../../src/service/events/deliveries';
import { createStores, ensureIndexes } from '../../src/store';
import type { EventDocument } from '../../src/store/events';
import { temporalAccess } from '../../src/temporal/access';
import { connectNative, installRuntime } from '../../src/temporal/native';
import { type PostWebhook, postWebhook } from '../../src/webhooks/post';
import { createResolver } from '../../src/webhooks/url';
import { workflowBundles } from '../../worker/bundle';
import { createWorkers } from '../../worker/create-worker';
import type { Stack } from '../servers/stack';
import { addDeliveries, buildSettledEvents } from './documents';
import { createMerchants } from './merchants';

/** Each attempt of a delivery, whether it posts or waits for the endpoint. */
const ATTEMPTS = /^temporal_activity_execution_latency_seconds_count\{(.*)\} (\d+)/gm;

export type DeliveryWorkers = Awaited<ReturnType<typeof startDeliveryWorkers>>;

/** Starts workers in this process, which count the attempts that hang and ask the silent server. */
export async function startDeliveryWorkers(
  { env, mongo, db }: Stack,
  { hangingUrl, names }: { hangingUrl: string; names: string },
) {
  const log = createLogger('bench', 'error');
  const [readMetrics] = await installRuntime(log, true);
  const stores = createStores(db);
  await ensureIndexes(stores);
  const access = temporalAccess(env);
  const connection = await connectNative(access);
  const keys = followKeyFile(env['KEYS_FILE'] ?? '');
  const resolve = createResolver({ servers: [names] });
  const hanging = { now: 0, max: 0 };
  const post: PostWebhook = async (attempt) => {
    if (attempt.url !== hangingUrl) return await postWebhook({ ...attempt, resolve });
    hanging.now += 1;
    hanging.max = Math.max(hanging.max, hanging.now);
    return await postWebhook(attempt).finally(() => {
      hanging.now -= 1;
    });
  };
  const workers = await createWorkers({
    ...{ connection, namespace: access.namespace, keys, post },
    databases: new Map(ENVIRONMENTS.map((environment) => [environment, { mongo, stores }])),
    allowPrivateWebhooks: true,
    openLongReader: () => Promise.reject(new Error('No ledger is checked here.')),
    log,
    workflowBundles: await workflowBundles(),
  });
  const running = workers.run();
  const temporal = new Client({ connection, namespace: access.namespace });
  return {
    hanging,
    openMerchant: createMerchants(stores, keys),
    recordEvents: async (account_id: string, count: number): Promise<EventDocument[]> => {
      const events = buildSettledEvents(account_id, count);
      await stores.events.insert(events);
      await stores.deliveries.insert(addDeliveries(events).deliveries);
      return events;
    },
    deliver: (event: EventDocument) =>
      startDeliveries(
        { temporal, webhookQueue: WEBHOOK_QUEUE, eager: true },
        addDeliveries([event]),
      ),
    countAttempts: async (): Promise<number> => {
      const lines = [...((await readMetrics?.()) ?? '').matchAll(ATTEMPTS)];
      return lines
        .filter(([, labels = '']) => labels.includes('activity_type="deliverWebhook"'))
        .reduce((sum, [, , count]) => sum + Number(count), 0);
    },
    countPending: (account_id: string): Promise<number> =>
      db.collection('deliveries').countDocuments({ account_id, status: 'pending' }),
    /** Ends a delivery, which would otherwise go on for a day on a server that keeps running. */
    terminate: async ({ _id }: EventDocument): Promise<void> => {
      await temporal.workflow.getHandle(webhookWorkflowId(_id)).terminate('end of the benchmark');
    },
    stop: async () => {
      workers.shutdown();
      await running;
      await connection.close();
    },
  };
}
