import type { Client } from '@temporalio/client';
import { type NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import type { Registry } from 'prom-client';
import { createLogger, type Logger } from '../../src/base/log';
import { createRegistry, type MetricsSource, serveMetrics } from '../../src/base/metrics';
import { connectMongo } from '../../src/base/mongo';
import { listenForStop } from '../../src/base/process';
import { createCallbackMeter } from '../../src/callbacks/metrics';
import { connectorQueue, questionQueue, taskQueues } from '../../src/domain/task-queues';
import { checkFormats } from '../../src/service/installation/epoch';
import { createStores, type Stores } from '../../src/store';
import { connectTemporal, type TemporalAccess } from '../../src/temporal/access';
import { connectNative, installRuntime, runWorker } from '../../src/temporal/native';
import {
  type CallbackMeter,
  type CallbackReceipt,
  type ConnectorKey,
  createCallbackMemory,
  deliverCallback,
  type ResourceCallback,
  readConnectorKey,
} from '../contract/callbacks';
import {
  createGuardMeter,
  createInstructionGuard,
  type GuardMeter,
  type InstructionGuard,
} from '../contract/guard';

/** Shorter than the client's own retries. */
const DELIVERY_MS = 4_000;
const SHUTDOWN_GRACE = '10s';
/** Idle but for operators: polls count for the namespace. */
const QUESTION_POLLERS = { type: 'autoscaling', minimum: 1, initial: 1, maximum: 5 } as const;

export interface ProcessConfig {
  LOG_LEVEL: string;
  METRICS_HOST: string;
  METRICS_PORT?: number | undefined;
  MONGODB_URI: string;
  MONGODB_DB: string;
  TASK_QUEUE_PREFIX: string;
  CONNECTOR_KEY_FILE: string;
  temporal: TemporalAccess;
}

/** `connector` as in `LIVE_CONNECTORS`; `logger` in the log. */
interface ProcessNames {
  connector: string;
  logger?: string;
}

type BankWorker = Pick<Worker, 'run' | 'getState' | 'shutdown'>;

export interface ConnectorProcess {
  connector: string;
  registry: Registry;
  mongo: MongoClient;
  connection: NativeConnection;
  temporal: Client;
  stores: Stores;
  now: () => Date;
  log: Logger;
  key: ConnectorKey | undefined;
  taskQueuePrefix: string;
  lifecycleQueue: string;
  namespace: string;
  meter: CallbackMeter;
  guardMeter: GuardMeter;
  guard: InstructionGuard;
  memory: ReturnType<typeof createCallbackMemory>;
  /** Delivers a report. Retry it until it does not throw. */
  deliver: (report: Omit<ResourceCallback, 'connector'>) => Promise<CallbackReceipt>;
  /** Takes instructions, and on a queue and in slots of their own the questions of operators. */
  createWorker: (activities: object, options?: Partial<WorkerOptions>) => Promise<BankWorker>;
  /** Serves metrics, and with `isReady` also `/healthz` and `/readyz`. */
  serveMetrics: (isReady?: () => boolean) => Promise<{ close(): Promise<void> }>;
  close: () => Promise<void>;
}

/** Call it before the first `await`, so that no stop is missed. */
export function beginProcess(
  names: ProcessNames,
  config: ProcessConfig,
): {
  log: Logger;
  onStop: ReturnType<typeof listenForStop>;
  connect: () => Promise<ConnectorProcess>;
} {
  const log = createLogger(names.logger ?? names.connector, config.LOG_LEVEL);
  const onStop = listenForStop(log);
  const connect = async () => {
    const sdkMetrics = await installRuntime(log, config.METRICS_PORT !== undefined);
    return await connectProcess(names, config, log, sdkMetrics);
  };
  return { log, onStop, connect };
}

/** @throws Error if MongoDB or Temporal does not answer, or has data of another format */
export async function connectProcess(
  { connector, logger = connector }: ProcessNames,
  config: ProcessConfig,
  log: Logger,
  sdkMetrics: readonly MetricsSource[] = [],
): Promise<ConnectorProcess> {
  const registry = createRegistry();
  const key = readConnectorKey(config.CONNECTOR_KEY_FILE, log);
  const [mongo, connection] = await Promise.all([
    connectMongo(config.MONGODB_URI, logger),
    connectNative(config.temporal),
  ]);
  const temporal = connectTemporal(config.temporal);
  const own = openProcess({
    connector,
    registry,
    key,
    mongo,
    connection,
    temporal,
    log,
    lifecycleQueue: taskQueues(config.TASK_QUEUE_PREFIX).lifecycleQueue,
    taskQueuePrefix: config.TASK_QUEUE_PREFIX,
    stores: createStores(mongo.db(config.MONGODB_DB)),
  });
  const close = async () => {
    await own.close();
    await Promise.all([connection.close(), temporal.connection.close(), mongo.close()]);
  };
  const { stores, lifecycleQueue } = own;
  try {
    await checkFormats({ epoch: stores.epoch, temporal, lifecycleQueue });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...own,
    serveMetrics: (isReady) => serveMetrics(config, registry, sdkMetrics, isReady),
    close,
  };
}

type Connections = Pick<
  ConnectorProcess,
  | 'connector'
  | 'registry'
  | 'key'
  | 'mongo'
  | 'connection'
  | 'temporal'
  | 'stores'
  | 'log'
  | 'taskQueuePrefix'
  | 'lifecycleQueue'
>;

/** Opens a process over connections that its caller closes. */
export function openProcess(connections: Connections): Omit<ConnectorProcess, 'serveMetrics'> {
  const { connector, registry, connection, temporal, stores, log, taskQueuePrefix } = connections;
  const now = () => new Date();
  const meter = createCallbackMeter(registry);
  const guardMeter = createGuardMeter(registry);
  const memory = createCallbackMemory(stores.callbacks, log);
  const { namespace } = temporal.options;
  const inbox = { ...connections, now, meter, memory };
  return {
    ...connections,
    now,
    meter,
    guardMeter,
    memory,
    namespace,
    guard: createInstructionGuard({ ...stores, connector, log, meter: guardMeter }),
    deliver: (report) =>
      temporal.withDeadline(Date.now() + DELIVERY_MS, () =>
        deliverCallback(inbox, { connector, ...report }),
      ),
    createWorker: (activities, options = {}) =>
      createWorker({ connection, namespace, activities, ...options }, [
        connectorQueue(connector, taskQueuePrefix),
        questionQueue(connector, taskQueuePrefix),
      ]),
    close: memory.close,
  };
}

async function createWorker(
  options: Omit<WorkerOptions, 'taskQueue'>,
  [instructions, questions]: [instructions: string, questions: string],
): Promise<BankWorker> {
  const common = { shutdownGraceTime: SHUTDOWN_GRACE, ...options };
  const pollers = { activityTaskPollerBehavior: QUESTION_POLLERS };
  const workers = await Promise.all([
    Worker.create({ ...common, taskQueue: instructions }),
    Worker.create({ ...common, ...pollers, taskQueue: questions }),
  ]);
  return {
    run: async () => {
      await Promise.all(workers.map(runWorker));
    },
    getState: () =>
      workers.map((worker) => worker.getState()).find((state) => state !== 'RUNNING') ?? 'RUNNING',
    shutdown: () => {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    },
  };
}
