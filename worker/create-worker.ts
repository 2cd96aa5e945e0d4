import { Client } from '@temporalio/client';
import { type NativeConnection, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import { createDeliveryActivities, createLifecycleActivities } from '../activities';
import { createAuditActivities } from '../activities/audit';
import type { Keys } from '../src/config';
import { LIFECYCLE_QUEUE, WEBHOOK_QUEUE } from '../src/domain/task-queues';
import type { KeyRing } from '../src/keys/ring';
import { createSealer } from '../src/keys/seal';
import type { Logger } from '../src/log';
import type { Stores } from '../src/store';
import { postWebhook } from '../src/webhooks/post';
import { readTuning, type Tuning, tunedOptions } from './tuning';

export interface WorkerDeps {
  connection: NativeConnection;
  namespace: string;
  mongo: MongoClient;
  stores: Stores;
  keys: Keys;
  /** The sealing keys as they change; those of `keys`, for good, when not given. */
  ring?: KeyRing;
  /** Whether sandbox webhook endpoints may be on this machine. */
  allowPrivateWebhooks: boolean;
  log: Logger;
  queues?: { lifecycle: string; webhooks: string };
  /** The defaults when not given. */
  tuning?: Tuning;
  workflowBundle: WorkflowBundleOption;
}

export interface Workers {
  /** Resolves after `shutdown`; rejects when a worker fails for good. */
  run(): Promise<void>;
  shutdown(): void;
  /** Whether both poll. */
  polling(): boolean;
}

/**
 * Two workers in one process: lifecycles, and deliveries, so that a slow receiver can't starve
 * payments. The same in production and in tests.
 */
export async function createWorkers(deps: WorkerDeps): Promise<Workers> {
  const { connection, namespace, stores, keys, log, workflowBundle } = deps;
  const queues = deps.queues ?? { lifecycle: LIFECYCLE_QUEUE, webhooks: WEBHOOK_QUEUE };
  const temporal = new Client({ connection, namespace });
  const { tuning = readTuning({}) } = deps;
  const common = { ...tunedOptions(tuning), connection, namespace, workflowBundle };
  const lifecycle = await Worker.create({
    ...common,
    taskQueue: queues.lifecycle,
    activities: {
      ...createLifecycleActivities({
        mongo: deps.mongo,
        stores,
        temporal,
        webhookQueue: queues.webhooks,
        eager: true,
        payTokenKey: keys.pay_token,
        log,
      }),
      ...createAuditActivities({
        stores,
        temporal,
        lifecycleQueue: queues.lifecycle,
        webhookQueue: queues.webhooks,
        now: () => new Date(),
        log,
      }),
    },
    maxConcurrentActivityTaskExecutions: tuning.ACTIVITY_SLOTS,
    maxConcurrentLocalActivityExecutions: tuning.ACTIVITY_SLOTS,
  });
  const webhooks = await Worker.create({
    ...common,
    taskQueue: queues.webhooks,
    activities: createDeliveryActivities({
      events: stores.events,
      deliveries: stores.deliveries,
      endpoints: stores.endpoints,
      sealer: createSealer(deps.ring ?? keys.seal),
      allowPrivate: deps.allowPrivateWebhooks,
      post: postWebhook,
      now: Date.now,
      random: Math.random,
      log,
    }),
    maxConcurrentActivityTaskExecutions: tuning.DELIVERY_SLOTS,
  });
  const both = [lifecycle, webhooks];
  return {
    run: async () => {
      await Promise.all(both.map((worker) => worker.run()));
    },
    shutdown: () => {
      for (const worker of both) if (worker.getState() === 'RUNNING') worker.shutdown();
    },
    polling: () => both.every((worker) => worker.getStatus().workflowPollerState === 'POLLING'),
  };
}
