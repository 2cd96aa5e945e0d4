import { setTimeout as sleep } from 'node:timers/promises';
import type { MongoClient } from 'mongodb';
import { createApp } from './api/app';
import { createApiMeter } from './api/metrics';
import { closeServer, createHttpServer } from './api/server';
import { isLive } from './base/live';
import { createLogger } from './base/log';
import { createRegistry, serveMetrics } from './base/metrics';
import { connectMongo, openDatabase } from './base/mongo';
import { listenForStop } from './base/process';
import { startTracing } from './base/tracing/start';
import { traceStarts } from './base/tracing/temporal';
import { createCallbackInbox } from './callbacks/inbox';
import { createCallbackMeter } from './callbacks/metrics';
import { readConfig } from './config';
import { omitUndefined } from './domain/defined';
import { taskQueues } from './domain/task-queues';
import { followAuditKey } from './encryption/audit-keys';
import { createEncrypter } from './encryption/encrypter';
import { warnOfReaders } from './encryption/key-file';
import { createRecipientEncrypters } from './encryption/recipient-keys';
import { followKeyFile } from './encryption/service-keys';
import { createConnectors, SANDBOX_CONNECTOR } from './routing';
import { createRedeliveries } from './service/events/redeliveries';
import { createRequestRecorder } from './service/events/requests';
import { watchEpochs } from './service/installation/epoch';
import { checkDatabase, createStores } from './store';
import { CACHE_MS } from './store/cache';
import { LIST_MS_MAX } from './store/list';
import { connectTemporal } from './temporal/access';
import { checkTemporal } from './temporal/attributes';
import { createTemporalClient } from './temporal/client';

/** Longer than a create waits for its workflow. */
const GRACE_MS = 10_000;
const VISITS_AT_ONCE = 15;

async function main(): Promise<void> {
  const config = readConfig();
  const log = createLogger('api', config.LOG_LEVEL);
  const stopBy = listenForStop(log);
  const mongo = await connectMongo(config.MONGODB_URI, 'api');
  const sign = followAuditKey(config.KEYS_DIR, 'api');
  const openStores = (client: MongoClient) =>
    createStores(openDatabase(client, config.MONGODB_DB, LIST_MS_MAX), CACHE_MS, sign);
  const stores = openStores(mongo);
  const visits = await connectMongo(config.MONGODB_URI, 'dashboard', {
    maxPoolSize: VISITS_AT_ONCE,
  });
  const visitStores = openStores(visits);
  await checkDatabase(stores, log);
  const tracing = await startTracing('api', config, log);
  const interceptors = tracing === undefined ? [] : [traceStarts(tracing)];
  const client = connectTemporal(config.temporal, undefined, interceptors);
  await checkTemporal({ ...config.temporal, connection: client.connection }, log, isLive(config));
  const registry = createRegistry();
  const { lifecycleQueue, webhookQueue } = taskQueues(config.TASK_QUEUE_PREFIX);
  const now = () => new Date();
  const meter = createCallbackMeter(registry);
  warnOfReaders(config.KEYS_FILE, log);
  const keys = followKeyFile(config.KEYS_FILE);
  const connectors = createConnectors(
    SANDBOX_CONNECTOR,
    config.LIVE_CONNECTORS,
    config.SANDBOX_CONNECTORS,
  );
  const stopping = new AbortController();
  const epochs = await watchEpochs(
    { epoch: stores.epoch, temporal: client, lifecycleQueue, now },
    { registry, log, advances: false },
  );
  const recorder = createRequestRecorder({ stores, log, registry });
  const callbacks = createCallbackInbox({ client, lifecycleQueue, stores, now, log, meter });
  const app = createApp({
    config,
    mongo,
    stores,
    dashboard: { mongo: visits, stores: visitStores },
    temporal: createTemporalClient({ client, lifecycleQueue, stores, now }),
    callbacks,
    redeliveries: createRedeliveries({ temporal: client, webhookQueue, stores, now }),
    connectors,
    keys,
    encrypter: createEncrypter(keys.seal),
    recipientEncrypters: createRecipientEncrypters(config.KEYS_DIR, (rail) =>
      connectors.listConnectors(rail, true),
    ),
    meter: createApiMeter(registry),
    recorder,
    stopping: stopping.signal,
    epochs,
    ...omitUndefined({ tracing }),
    now,
    log,
  });
  const metricsPage = await serveMetrics(config, registry);
  const server = createHttpServer(app.callback(), {
    keepAliveTimeout: config.API_KEEP_ALIVE_SECONDS * 1_000,
  });
  server.listen(config.PORT, config.HOST, () => log.info({ port: config.PORT }, 'api listens'));
  server.on('error', (err) => {
    log.fatal({ err }, 'api cannot listen');
    process.exit(1);
  });
  stopBy(async () => {
    stopping.abort();
    epochs.close();
    // The load balancer sees `/readyz` fail before the listener closes.
    await sleep(config.DRAIN_MS);
    await closeServer(server, GRACE_MS);
    await Promise.all([recorder.close(), callbacks.close()]);
    await metricsPage.close();
    await tracing?.close();
    await client.connection.close();
    await Promise.all([mongo.close(), visits.close()]);
    process.exit(0);
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
