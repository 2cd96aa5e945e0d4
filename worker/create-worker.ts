import { Client } from '@temporalio/client';
import { type NativeConnection, Worker, type WorkerInterceptors } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import { createDeliveryActivities, createLifecycleActivities } from '../activities';
import { createAuditActivities } from '../activities/audit';
import type { RefusalMeter } from '../activities/record-table';
import { createRetentionActivities } from '../activities/retention';
import { createSenderActivities } from '../activities/senders';
import { createSettleActivities } from '../activities/settle';
import {
  ENVIRONMENTS,
  type Environment,
  environmentQueue,
  LIFECYCLE_QUEUE,
  WEBHOOK_QUEUE,
} from '../src/domain/task-queues';
import type { Rings } from '../src/keys/ring';
import { createSealer } from '../src/keys/seal';
import type { Logger } from '../src/log';
import { createPayers } from '../src/merchants/payers';
import { type Connectors, createConnectors, SANDBOX_CONNECTOR } from '../src/routing';
import type { Stores } from '../src/store';
import { traceStarts, traceSteps } from '../src/tracing/temporal';
import type { Tracing } from '../src/tracing/tracing';
import { tracedPost } from '../src/tracing/webhooks';
import { createEndpointLimits } from '../src/webhooks/endpoint-limits';
import { type PostWebhook, postWebhook } from '../src/webhooks/post';
import type { WorkflowBundles } from './bundle';
import { readTuning, type Tuning, tunedOptions } from './tuning';
import { versionOptions, type WorkerVersion } from './versioning';

export interface WorkerDeps {
  connection: NativeConnection;
  namespace: string;
  mongo: MongoClient;
  stores: Stores;
  rings: Rings;
  /** Whether sandbox webhook endpoints may be on this machine. */
  allowPrivateWebhooks: boolean;
  log: Logger;
  /** Bare names; each environment has its own queue of each. */
  queues?: { lifecycle: string; webhooks: string };
  /** Traces of steps and webhooks; none when not given. */
  tracing?: Tracing | undefined;
  /** Version of the workers; they are told apart from no others when not given. */
  version?: WorkerVersion | undefined;
  /** Environments that are served; both when not given. */
  environments?: readonly Environment[];
  /** The defaults when not given. */
  tuning?: Tuning;
  workflowBundles: WorkflowBundles;
  /** Routes coins to their connectors; those of the sandbox alone when not given. */
  connectors?: Connectors;
  /** Sends what is delivered; a benchmark has names looked up elsewhere. */
  post?: PostWebhook;
  /** Counter of callbacks whose sender is not known; none when not given. */
  refusals?: RefusalMeter;
}

export interface Workers {
  /** Resolves after `shutdown`; rejects when a worker fails for good. */
  run(): Promise<void>;
  shutdown(): void;
  /** Whether all poll. */
  polling(): boolean;
}

type Queues = NonNullable<WorkerDeps['queues']>;

/**
 * Four workers in one process: lifecycles and deliveries, so that a slow receiver can't starve
 * payments, each for sandbox and live, so that tests can't starve money. The same in production and
 * in tests, of which most need the sandbox's alone.
 */
export async function createWorkers(deps: WorkerDeps): Promise<Workers> {
  const { connection, namespace, workflowBundles, tuning = readTuning({}), version } = deps;
  const queues = deps.queues ?? { lifecycle: LIFECYCLE_QUEUE, webhooks: WEBHOOK_QUEUE };
  const common = { ...tunedOptions(tuning), connection, namespace, ...stepsTraced(deps) };
  const workers: Worker[] = [];
  for (const environment of deps.environments ?? ENVIRONMENTS) {
    const livemode = environment === 'live';
    const lifecycle = await Worker.create({
      ...common,
      ...versionOptions(version, 'AUTO_UPGRADE'),
      taskQueue: environmentQueue(queues.lifecycle, livemode),
      workflowBundle: workflowBundles.lifecycle,
      activities: lifecycleActivities(deps, queues, tuning),
      maxConcurrentActivityTaskExecutions: tuning.ACTIVITY_SLOTS,
      maxConcurrentLocalActivityExecutions: tuning.ACTIVITY_SLOTS,
    });
    const webhooks = await Worker.create({
      ...common,
      ...versionOptions(version, 'PINNED'),
      taskQueue: environmentQueue(queues.webhooks, livemode),
      workflowBundle: workflowBundles.webhooks,
      activities: deliveryActivities(deps, tuning),
      maxConcurrentActivityTaskExecutions: tuning.DELIVERY_SLOTS,
      maxConcurrentWorkflowTaskExecutions: deliveryTaskSlots(tuning),
    });
    workers.push(lifecycle, webhooks);
  }
  return {
    run: async () => {
      await Promise.all(workers.map((worker) => worker.run()));
    },
    shutdown: () => {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    },
    polling: () => workers.every((worker) => worker.getStatus().workflowPollerState === 'POLLING'),
  };
}

function lifecycleActivities(deps: WorkerDeps, queues: Queues, tuning: Tuning) {
  const { connection, namespace, mongo, stores, rings, log, connectors, tracing } = deps;
  const { refusals } = deps;
  const now = () => new Date();
  const sealer = createSealer(rings.seal);
  const workflow = tracing === undefined ? [] : [traceStarts(tracing)];
  const temporal = new Client({ connection, namespace, interceptors: { workflow } });
  const common = { stores, temporal, webhookQueue: queues.webhooks, log };
  return {
    ...createLifecycleActivities({
      ...{ ...common, mongo, refusals },
      eager: true,
      payTokens: rings.pay_token,
    }),
    ...createSenderActivities({ stores, sealer }),
    ...createSettleActivities({
      ...{ stores, temporal, lifecycleQueue: queues.lifecycle },
      connectors: connectors ?? createConnectors(SANDBOX_CONNECTOR),
      now: () => new Date(),
    }),
    ...createAuditActivities({
      ...common,
      lifecycleQueue: queues.lifecycle,
      now,
    }),
    ...createRetentionActivities({
      ...common,
      payers: createPayers({ accounts: stores.accounts, sealer, log }),
      recipientMonths: tuning.RECIPIENT_DETAILS_MONTHS,
      now,
    }),
  };
}

function deliveryActivities(
  { stores, rings, allowPrivateWebhooks, log, tracing, post = postWebhook }: WorkerDeps,
  tuning: Tuning,
) {
  const slots = tuning.DELIVERY_SLOTS;
  const promptSlots = deliveryTaskSlots(tuning) / 2;
  return createDeliveryActivities({
    events: stores.events,
    deliveries: stores.deliveries,
    endpoints: stores.endpoints,
    limits: createEndpointLimits({ slots, promptSlots }),
    sealer: createSealer(rings.seal),
    allowPrivate: allowPrivateWebhooks,
    post: tracedPost(tracing, post),
    now: Date.now,
    random: Math.random,
    log,
  });
}

function stepsTraced({ tracing }: WorkerDeps): { interceptors?: WorkerInterceptors } {
  return tracing === undefined ? {} : { interceptors: { activity: [traceSteps(tracing)] } };
}

/** Half of them may wait for first attempts; a task that waits costs no thread. */
function deliveryTaskSlots({ WORKFLOW_SLOTS, DELIVERY_SLOTS }: Tuning): number {
  return Math.max(WORKFLOW_SLOTS, Math.floor(DELIVERY_SLOTS / 2));
}
