import { Client } from '@temporalio/client';
import { type NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import { createLifecycleActivities } from '../activities';
import { createClockActivities } from '../activities/clock';
import { createAuditActivities } from '../activities/schedules/audit';
import { createLedgerCheckActivities } from '../activities/schedules/ledger';
import { createRetentionActivities } from '../activities/schedules/retention';
import { createSettleActivities } from '../activities/schedules/settle';
import type { RefusalMeter } from '../activities/shared/record-table';
import { createSenderActivities } from '../activities/shared/verification';
import { createWebhookActivities } from '../activities/webhooks/deliver';
import type { Logger } from '../src/base/log';
import type { ClockMeter } from '../src/base/metrics';
import { traceActivities, traceStarts } from '../src/base/tracing/temporal';
import type { Tracing } from '../src/base/tracing/tracing';
import { type Env, isLive } from '../src/domain/environment';
import type { ApprovalLimits } from '../src/domain/operators/approval';
import { RETENTION, type RetentionMonths } from '../src/domain/operators/retention';
import { environmentQueue, LIFECYCLE_QUEUE, WEBHOOK_QUEUE } from '../src/domain/task-queues';
import { cacheDecrypted, createEncrypter } from '../src/encryption/encrypter';
import type { ServiceKeys } from '../src/encryption/service-keys';
import { LIFECYCLES } from '../src/lifecycles';
import { type Connectors, createConnectors, SANDBOX_CONNECTOR } from '../src/routing';
import { tryDeliveryNow } from '../src/service/events/deliveries';
import { createEndpointHealth } from '../src/service/events/endpoints/manage';
import type { Stores } from '../src/store';
import { failRefusedBooks, reportStuckSteps } from '../src/temporal/interceptors';
import { runWorker } from '../src/temporal/native';
import { createEndpointLimits } from '../src/webhooks/endpoint-limits';
import { tracePost } from '../src/webhooks/observed-post';
import { type PostWebhook, postWebhook } from '../src/webhooks/post';
import type { WorkflowBundles } from './bundle';
import { versionOptions, type WorkerVersion } from './versioning';

const ACTIVITY_SLOTS = 50;

const DELIVERY_SLOTS = 200;

/** Half of them may wait for first attempts. */
const DELIVERY_TASK_SLOTS = DELIVERY_SLOTS / 2;

/**
 * Few, since tasks that share a starved processor would all time out, and the same ones come again:
 * others wait in Temporal, where no time limit runs.
 */
const LIFECYCLE_TASK_SLOTS = 12;

/**
 * The SDK's types lack this limit. A lower one would end the process again and again on thousands
 * of signals.
 */
const PATIENCE = { isolateExecutionTimeout: '60s' };

/** A process has four workers: idle ones poll little, which Temporal counts for each namespace. */
const POLLERS = { type: 'autoscaling', minimum: 2, initial: 10, maximum: 10 } as const;

/**
 * Lets a webhook attempt, of ten seconds at most, end within the grace.
 * @see docs/operations.md#scaling
 */
export const WORKER_OPTIONS = {
  shutdownGraceTime: '12s',
  shutdownForceTime: '20s',
  ...PATIENCE,
  // Another worker would have to replay the workflows of a busy one.
  stickyQueueScheduleToStartTimeout: '5s',
  maxConcurrentWorkflowTaskExecutions: LIFECYCLE_TASK_SLOTS,
  maxCachedWorkflows: 1_000,
  workflowTaskPollerBehavior: POLLERS,
  activityTaskPollerBehavior: POLLERS,
  // By default 80 % of the heartbeat timeout: a killed worker's later progress is repeated.
  maxHeartbeatThrottleInterval: '10s',
} satisfies Partial<WorkerOptions>;

export interface Database {
  mongo: MongoClient;
  stores: Stores;
}

export interface WorkerDeps {
  connection: NativeConnection;
  namespace: string;
  /** A flood in one environment takes no connections of the other. */
  databases: ReadonlyMap<Env, Database>;
  keys: Pick<ServiceKeys, 'pay_token' | 'seal'>;
  allowPrivateWebhooks: boolean;
  log: Logger;
  /** Base names: each environment has its own queues. */
  queues?: { lifecycle: string; webhooks: string };
  tracing?: Tracing | undefined;
  version?: WorkerVersion | undefined;
  retention?: RetentionMonths;
  workflowBundles: WorkflowBundles;
  connectors?: Connectors;
  post?: PostWebhook;
  refusals?: RefusalMeter;
  clock?: ClockMeter;
  openLongReader: () => Promise<MongoClient>;
  /** By default about 1,000 euros. */
  approvalLimits?: ApprovalLimits | undefined;
}

export interface Workers {
  /** Resolves after `shutdown`; rejects when a worker fails permanently. */
  run(): Promise<void>;
  shutdown(): void;
  polling(): boolean;
}

const LIFECYCLE_TYPES = new Set<string>(
  Object.values(LIFECYCLES).map(({ workflowType }) => workflowType),
);

type Queues = NonNullable<WorkerDeps['queues']>;

/** Separates deliveries, so that a slow receiver can't starve payments. */
export async function createWorkers(deps: WorkerDeps): Promise<Workers> {
  const { connection, namespace, workflowBundles, version, tracing, log } = deps;
  const queues = deps.queues ?? { lifecycle: LIFECYCLE_QUEUE, webhooks: WEBHOOK_QUEUE };
  const temporal = new Client({ connection, namespace });
  const activity = [reportStuckSteps(temporal, LIFECYCLE_TYPES, log), failRefusedBooks(log)];
  if (tracing !== undefined) activity.push(traceActivities(tracing));
  const common = {
    ...WORKER_OPTIONS,
    ...{ connection, namespace, interceptors: { activity } },
  };
  const workers: Worker[] = [];
  for (const [environment, database] of deps.databases) {
    const livemode = isLive(environment);
    const lifecycle = await Worker.create({
      ...common,
      ...versionOptions(version, 'AUTO_UPGRADE'),
      taskQueue: environmentQueue(queues.lifecycle, livemode),
      workflowBundle: workflowBundles.lifecycle,
      activities: lifecycleActivities(deps, database, queues),
      maxConcurrentActivityTaskExecutions: ACTIVITY_SLOTS,
      maxConcurrentLocalActivityExecutions: ACTIVITY_SLOTS,
    });
    const webhooks = await Worker.create({
      ...common,
      ...versionOptions(version, 'PINNED'),
      taskQueue: environmentQueue(queues.webhooks, livemode),
      workflowBundle: workflowBundles.webhooks,
      activities: deliveryActivities(deps, database),
      maxConcurrentActivityTaskExecutions: DELIVERY_SLOTS,
      maxConcurrentWorkflowTaskExecutions: DELIVERY_TASK_SLOTS,
    });
    workers.push(lifecycle, webhooks);
  }
  return {
    run: async () => {
      await Promise.all(workers.map(runWorker));
    },
    shutdown: () => {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    },
    polling: () => workers.every((worker) => worker.getStatus().workflowPollerState === 'POLLING'),
  };
}

function lifecycleActivities(deps: WorkerDeps, { mongo, stores }: Database, queues: Queues) {
  const { connection, namespace, keys, log, connectors, tracing } = deps;
  const { refusals, clock, retention = RETENTION } = deps;
  const now = () => new Date();
  const workflow = tracing === undefined ? [] : [traceStarts(tracing)];
  const temporal = new Client({ connection, namespace, interceptors: { workflow } });
  const common = { stores, temporal, webhookQueue: queues.webhooks, log };
  return {
    ...createLifecycleActivities({
      ...{ ...common, mongo, refusals, clock, approvalLimits: deps.approvalLimits },
      eager: true,
      payTokenKey: keys.pay_token,
    }),
    ...createClockActivities({ stores, temporal, now }),
    ...createSenderActivities({ stores, encrypter: createEncrypter(keys.seal) }),
    ...createSettleActivities({
      ...{ stores, temporal, lifecycleQueue: queues.lifecycle },
      connectors: connectors ?? createConnectors(SANDBOX_CONNECTOR),
      now,
    }),
    ...createAuditActivities({ ...common, lifecycleQueue: queues.lifecycle, now }),
    ...createRetentionActivities({ ...common, months: retention, now }),
    ...createLedgerCheckActivities({
      ...{ log, now, openLongReader: deps.openLongReader },
      database: stores.ledger.collections.books.dbName,
      noteRun: () => stores.scheduleRuns.note('ledger', now()),
    }),
  };
}

function deliveryActivities(deps: WorkerDeps, { mongo, stores }: Database) {
  const { connection, namespace, keys, log, tracing } = deps;
  const temporal = new Client({ connection, namespace });
  return createWebhookActivities({
    accounts: stores.accounts,
    health: createEndpointHealth({ mongo, stores, now: () => new Date(), log }),
    deliveries: stores.deliveries,
    endpoints: stores.endpoints,
    limits: createEndpointLimits({ slots: DELIVERY_SLOTS, promptSlots: DELIVERY_TASK_SLOTS / 2 }),
    encrypter: cacheDecrypted(createEncrypter(keys.seal)),
    allowPrivate: deps.allowPrivateWebhooks,
    post: tracePost(tracing, deps.post ?? postWebhook),
    tryNow: (delivery) => tryDeliveryNow(temporal, delivery),
    now: Date.now,
    random: Math.random,
    log,
  });
}
