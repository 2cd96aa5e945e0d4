import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import { isLive } from '../src/base/live';
import { createLogger, type Logger } from '../src/base/log';
import { createRegistry, serveMetrics } from '../src/base/metrics-page';
import { connectMongo, readTransactionLifetime } from '../src/base/mongo';
import { exitAfter, listenForStop } from '../src/base/process';
import { startTracing } from '../src/base/tracing/start';
import { createRefusalMeter } from '../src/callbacks/metrics';
import { readConfig } from '../src/config';
import { taskQueues } from '../src/domain/task-queues';
import { warnOfReaders } from '../src/encryption/file-mode';
import { followKeyFile } from '../src/encryption/service-keys';
import { type Connectors, createConnectors, SANDBOX_CONNECTOR } from '../src/routing';
import { measureStores } from '../src/service/metrics';
import { checkIndexes, createStores, type Stores } from '../src/store';
import { CACHE_MS } from '../src/store/cache';
import { createMetricStore } from '../src/store/metrics';
import { checkTemporal } from '../src/temporal/attributes';
import { connectNative, installRuntime } from '../src/temporal/native';
import { ensureSchedule, SCHEDULE_NAMES } from '../src/temporal/schedules';
import { createDenyCheck } from '../src/webhooks/address';
import { meterPost } from '../src/webhooks/metrics';
import { postOutside } from '../src/webhooks/post';
import { workflowBundles } from './bundle';
import { createWorkers, type Workers } from './create-worker';
import { readVersion } from './versioning';

const HEARTBEAT_MS = 2_000;

const LIFETIME_S_MAX = 5;

/** Warns when a killed worker would lock its merchant's book for long. */
async function checkTransactionLifetime(mongo: MongoClient, log: Logger): Promise<void> {
  const seconds = await readTransactionLifetime(mongo);
  if (seconds === undefined || seconds <= LIFETIME_S_MAX) return;
  log.warn({ seconds }, 'MongoDB keeps the transactions of a killed worker for long');
}

async function warnAboutMissingKeys(
  { sandbox, names }: Connectors,
  { connectorKeys }: Stores,
  log: Logger,
): Promise<void> {
  for (const connector of names) {
    if (connector === sandbox || (await connectorKeys.current(connector)).length > 0) continue;
    const text = 'callbacks of a live connector without a key move nothing: connector key create';
    log.warn({ connector, code: 'connector_without_key' }, text);
  }
}

async function main(): Promise<void> {
  const config = readConfig();
  const log = createLogger('worker', config.LOG_LEVEL);
  const stopBy = listenForStop(log);
  const sdkMetrics = await installRuntime(log, config.METRICS_PORT !== undefined);
  const mongo = await connectMongo(config.MONGODB_URI, 'worker');
  const stores = createStores(mongo.db(config.MONGODB_DB), CACHE_MS);
  await checkIndexes(stores, log);
  await checkTransactionLifetime(mongo, log);
  const connection = await connectNative(config.temporal);
  const { namespace } = config.temporal;
  await checkTemporal({ connection, namespace }, log, isLive(config));
  const tracing = await startTracing('worker', config, log);
  warnOfReaders(config.KEYS_FILE, log);
  const queues = taskQueues(config.TASK_QUEUE_PREFIX);
  const registry = createRegistry();
  measureStores(registry, createMetricStore(mongo.db(config.MONGODB_DB)), () => new Date(), log);
  const connectors = createConnectors(SANDBOX_CONNECTOR, config.LIVE_CONNECTORS);
  await warnAboutMissingKeys(connectors, stores, log);
  const workers = await createWorkers({
    connection,
    namespace,
    mongo,
    stores,
    keys: followKeyFile(config.KEYS_FILE),
    allowPrivateWebhooks: config.WEBHOOK_ALLOW_PRIVATE === 'sandbox',
    log,
    queues: { lifecycle: queues.lifecycleQueue, webhooks: queues.webhookQueue },
    connectors,
    recipientMonths: config.RECIPIENT_DETAILS_MONTHS,
    version: readVersion(config),
    tracing,
    workflowBundles: await workflowBundles(),
    refusals: createRefusalMeter(registry),
    post: meterPost(registry, postOutside(createDenyCheck(config.WEBHOOK_DENY_CIDRS))),
  });
  const metrics = await serveMetrics(config, registry, sdkMetrics, workers.polling);
  const stopBeating = beat(stores, workers, log);
  stopBy(async () => {
    workers.shutdown();
    // At once, so that `/readyz` of the API does not count on it.
    await stopBeating();
  });
  log.info('worker polls');
  const temporal = new Client({ connection, namespace });
  const schedulesReady = makeSchedules(temporal, queues.lifecycleQueue, log);
  await workers.run();
  await stopBeating();
  await schedulesReady;
  await metrics.close();
  await tracing?.close();
  await connection.close();
  await mongo.close();
}

async function makeSchedules(temporal: Client, queue: string, log: Logger): Promise<void> {
  for (const name of SCHEDULE_NAMES) {
    try {
      log.info({ status: await ensureSchedule(temporal, name, queue) }, `${name} scheduled`);
    } catch (err) {
      log.warn({ err }, `${name} not scheduled`);
    }
  }
}

/** Reports to `/readyz` that a worker polls. */
function beat(stores: Stores, workers: Workers, log: Logger): () => Promise<void> {
  const id = `${hostname()}:${process.pid}:${randomUUID()}`;
  const tick = () => {
    if (!workers.polling()) return;
    stores.heartbeats.beat(id, new Date()).catch((err) => log.warn({ err }, 'heartbeat failed'));
  };
  const timer = setInterval(tick, HEARTBEAT_MS);
  setTimeout(tick, 50);
  return async () => {
    clearInterval(timer);
    await stores.heartbeats.end(id).catch((err) => log.warn({ err }, 'heartbeat not ended'));
  };
}

exitAfter(main());
