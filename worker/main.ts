import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import { isLive } from '../src/base/live';
import { createLogger, type Logger } from '../src/base/log';
import { createClockMeter, createRegistry, serveMetrics } from '../src/base/metrics';
import { connectLongReader, connectMongo, readTransactionLifetime } from '../src/base/mongo';
import { exitAfter, listenForStop } from '../src/base/process';
import { PLAIN_TEXT_ALLOWED } from '../src/base/tls';
import { startTracing } from '../src/base/tracing/start';
import { createRefusalMeter } from '../src/callbacks/metrics';
import { readConfig } from '../src/config';
import { type Env, parseEnvironments } from '../src/domain/environment';
import { readApprovalLimits } from '../src/domain/operators/approval';
import { parseRetention } from '../src/domain/operators/retention';
import { connectorQueue, taskQueues } from '../src/domain/task-queues';
import { followAuditKey } from '../src/encryption/audit-keys';
import { warnOfReaders } from '../src/encryption/key-file';
import { followKeyFile } from '../src/encryption/service-keys';
import { type Connectors, createConnectors, SANDBOX_CONNECTOR } from '../src/routing';
import { FIRST_CHECK_MS, watchEpochs } from '../src/service/installation/epoch';
import { measureRouting, measureStores } from '../src/service/installation/metrics';
import { createMailer, readSmtpServer } from '../src/service/merchants/mail/transport';
import { checkDatabase, createStores, type Stores } from '../src/store';
import { CACHE_MS } from '../src/store/cache';
import { createMetricStore } from '../src/store/metrics';
import { checkTemporal } from '../src/temporal/attributes';
import { connectNative, installRuntime } from '../src/temporal/native';
import { SCHEDULE_ENVIRONMENT } from '../src/temporal/schedules';
import { readTaskQueue } from '../src/temporal/status';
import { createHostLimits } from '../src/webhooks/endpoint-limits';
import { meterPost } from '../src/webhooks/observed-post';
import { postOutside } from '../src/webhooks/post';
import { createDenyCheck } from '../src/webhooks/url';
import { workflowBundles } from './bundle';
import { createWorkers, type Database, type Workers } from './create-worker';
import { startCollecting, startScheduling, startSendingMail } from './rounds';
import { readVersion } from './versioning';

const HEARTBEAT_MS = 2_000;
/** Less than a scrape may take. */
const QUEUE_MS_MAX = 4_000;

/** A killed worker would lock its merchant's book for so long. */
const LIFETIME_S_MAX = 5;

async function warnAboutMissingKeys(
  { sandbox, liveNames }: Connectors,
  { connectorKeys }: Stores,
  log: Logger,
): Promise<void> {
  for (const connector of liveNames) {
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
  const sign = followAuditKey(config.KEYS_DIR, 'worker');
  const openDatabase = async (): Promise<Database> => {
    const mongo = await connectMongo(config.MONGODB_URI, 'worker');
    return { mongo, stores: createStores(mongo.db(config.MONGODB_DB), CACHE_MS, sign) };
  };
  // What the process does for itself waits for no environment.
  const { mongo, stores } = await openDatabase();
  await checkDatabase(stores, log);
  const connectors = createConnectors(
    SANDBOX_CONNECTOR,
    config.LIVE_CONNECTORS,
    config.SANDBOX_CONNECTORS,
  );
  const limitTexts = { limit: config.APPROVAL_LIMIT, day: config.APPROVAL_LIMIT_DAY };
  await stores.approvals.publishLimits(limitTexts, connectors.liveNames);
  const allowPlainText = config.ALLOW_CLEAR_TEXT === PLAIN_TEXT_ALLOWED;
  const smtp = readSmtpServer(config.SMTP_URL, allowPlainText);
  await stores.mails.publish(smtp !== undefined);
  const lifetime = await readTransactionLifetime(mongo);
  if (lifetime !== undefined && lifetime > LIFETIME_S_MAX) {
    log.warn({ seconds: lifetime }, 'MongoDB keeps the transactions of a killed worker for long');
  }
  const connection = await connectNative(config.temporal);
  const { namespace } = config.temporal;
  await checkTemporal({ connection, namespace }, log, isLive(config));
  const tracing = await startTracing('worker', config, log);
  warnOfReaders(config.KEYS_FILE, log);
  const queues = taskQueues(config.TASK_QUEUE_PREFIX);
  const registry = createRegistry();
  measureStores(registry, createMetricStore(mongo.db(config.MONGODB_DB)), () => new Date(), log);
  const temporal = new Client({ connection, namespace });
  const readQueue = (connector: string) => {
    const name = connectorQueue(connector, config.TASK_QUEUE_PREFIX);
    const queue = { namespace, name, type: 'activity' } as const;
    return temporal.withDeadline(Date.now() + QUEUE_MS_MAX, () => readTaskQueue(temporal, queue));
  };
  measureRouting(registry, { connectors, stores, readQueue }, log);
  await warnAboutMissingKeys(connectors, stores, log);
  let workers: Workers | undefined;
  const isPolling = () => workers?.polling() ?? false;
  const metrics = await serveMetrics(config, registry, sdkMetrics, isPolling);
  const epochs = await watchEpochs(
    { epoch: stores.epoch, temporal, lifecycleQueue: queues.lifecycleQueue, now: () => new Date() },
    { registry, log, advances: true, onBehind: () => workers?.shutdown() },
  );
  const post = postOutside(
    createDenyCheck(config.WEBHOOK_DENY_CIDRS),
    createHostLimits({ registry, log }),
  );
  // No transition is written to a database that lacks what its workflows know.
  while (epochs.fault() !== undefined) await sleep(FIRST_CHECK_MS);
  const environments = parseEnvironments(config.WORKER_ENVIRONMENTS);
  const databases = new Map<Env, Database>();
  for (const environment of environments) databases.set(environment, await openDatabase());
  workers = await createWorkers({
    connection,
    namespace,
    databases,
    keys: followKeyFile(config.KEYS_FILE),
    allowPrivateWebhooks: config.WEBHOOK_ALLOW_PRIVATE === 'sandbox',
    log,
    queues: { lifecycle: queues.lifecycleQueue, webhooks: queues.webhookQueue },
    connectors,
    retention: parseRetention(config.RETENTION_MONTHS),
    approvalLimits: readApprovalLimits(limitTexts),
    version: readVersion(config),
    tracing,
    workflowBundles: await workflowBundles(),
    refusals: createRefusalMeter(registry),
    clock: createClockMeter(registry, log),
    openLongReader: () => connectLongReader(config.MONGODB_URI, 'worker'),
    post: meterPost(registry, post),
  });
  // None of them polls yet, so what was found meanwhile has not shut them down.
  while (epochs.fault() !== undefined) await sleep(FIRST_CHECK_MS);
  const stops = [beat(stores, environments, workers, log)];
  for (const [environment, database] of databases) {
    stops.push(startCollecting({ ...database, livemode: environment === 'live', log }));
  }
  if (smtp !== undefined) {
    const publicUrl = config.PUBLIC_URL;
    const send = createMailer(smtp, { publicUrl });
    stops.push(startSendingMail({ stores, now: () => new Date(), send, publicUrl, log }));
  }
  const stopAll = () => Promise.all(stops.map((stop) => stop()));
  stopBy(async () => {
    workers?.shutdown();
    epochs.close();
    // At once, so that `/readyz` of the API does not count on it.
    await stopAll();
  });
  log.info('worker polls');
  if (databases.has(SCHEDULE_ENVIRONMENT)) {
    stops.push(startScheduling({ temporal, lifecycleQueue: queues.lifecycleQueue, log }));
  }
  await workers.run();
  await stopAll();
  await metrics.close();
  await tracing?.close();
  await connection.close();
  for (const database of databases.values()) await database.mongo.close();
  await mongo.close();
}

function beat(
  { heartbeats }: Stores,
  environments: readonly Env[],
  workers: Workers,
  log: Logger,
): () => Promise<void> {
  const id = `${hostname()}:${process.pid}:${randomUUID()}`;
  const tick = () => {
    if (!workers.polling()) return;
    heartbeats
      .beat(id, new Date(), environments)
      .catch((err) => log.warn({ err }, 'heartbeat failed'));
  };
  const timer = setInterval(tick, HEARTBEAT_MS);
  setTimeout(tick, 50);
  return async () => {
    clearInterval(timer);
    await heartbeats.end(id).catch((err) => log.warn({ err }, 'heartbeat not ended'));
  };
}

exitAfter(main());
