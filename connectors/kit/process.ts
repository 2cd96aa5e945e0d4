import type { Client } from '@temporalio/client';
import { type NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import type { Registry } from 'prom-client';
import { createLogger, type Logger } from '../../src/base/log';
import { createRegistry, type MetricsSource, serveMetrics } from '../../src/base/metrics-page';
import { connectMongo } from '../../src/base/mongo';
import { listenForStop } from '../../src/base/process';
import { createCallbackMeter } from '../../src/callbacks/metrics';
import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { checkFormats } from '../../src/service/installation/epoch';
import { createStores, type Stores } from '../../src/store';
import { connectTemporal, type TemporalAccess } from '../../src/temporal/access';
import { connectNative, installRuntime } from '../../src/temporal/native';
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

/** Shorter than the lease of a row, and than the client's own retries. */
export const DELIVERY_MS = 4_000;
export const SHUTDOWN_GRACE = '10s';

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
  taskQueue: string;
  lifecycleQueue: string;
  namespace: string;
  meter: CallbackMeter;
  guardMeter: GuardMeter;
  guard: InstructionGuard;
  /** Delivers a report. Retry it until it does not throw. */
  deliver: (report: Omit<ResourceCallback, 'connector'>) => Promise<CallbackReceipt>;
  createWorker: (activities: object, options?: Partial<WorkerOptions>) => Promise<Worker>;
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
  const stores = createStores(mongo.db(config.MONGODB_DB));
  const now = () => new Date();
  const meter = createCallbackMeter(registry);
  const guardMeter = createGuardMeter(registry);
  const { lifecycleQueue } = taskQueues(config.TASK_QUEUE_PREFIX);
  const taskQueue = connectorQueue(connector, config.TASK_QUEUE_PREFIX);
  const memory = createCallbackMemory(stores.callbacks, log);
  const close = async () => {
    await memory.close();
    await Promise.all([connection.close(), temporal.connection.close(), mongo.close()]);
  };
  try {
    await checkFormats({ epoch: stores.epoch, temporal, lifecycleQueue });
  } catch (error) {
    await close();
    throw error;
  }
  const { namespace } = config.temporal;
  const inbox = { stores, temporal, lifecycleQueue, now, log, meter, key, memory };
  return {
    ...{ connector, registry, mongo, connection, temporal, stores, now, log, key, taskQueue },
    ...{ lifecycleQueue, meter, guardMeter, namespace },
    guard: createInstructionGuard({ ...stores, connector, log, meter: guardMeter }),
    deliver: (report) =>
      temporal.withDeadline(Date.now() + DELIVERY_MS, () =>
        deliverCallback(inbox, { connector, ...report }),
      ),
    createWorker: (activities, options = {}) =>
      createWorker({ connection, namespace, taskQueue, activities, ...options }),
    serveMetrics: (isReady) => serveMetrics(config, registry, sdkMetrics, isReady),
    close,
  };
}

function createWorker(options: WorkerOptions & { connection: NativeConnection }): Promise<Worker> {
  return Worker.create({ shutdownGraceTime: SHUTDOWN_GRACE, ...options });
}
