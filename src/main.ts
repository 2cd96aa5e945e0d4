import { setTimeout as sleep } from 'node:timers/promises';
import { createApp } from './api/app';
import { closeServer, createHttpServer } from './api/server';
import { readConfig } from './config';
import { defined } from './domain/defined';
import { taskQueues } from './domain/task-queues';
import { warnOfReaders } from './keys/file-mode';
import { createRecipientSealers } from './keys/recipient-rings';
import { followRings } from './keys/ring';
import { createSealer } from './keys/seal';
import { isLive } from './live';
import { createLogger } from './log';
import { createApiMeter } from './metrics/api';
import { createCallbackMeter } from './metrics/callbacks';
import { createRegistry, serveMetrics } from './metrics/page';
import { connectMongo } from './mongo';
import { listenForStop } from './process';
import { createConnectors, SANDBOX_CONNECTOR } from './routing';
import { checkIndexes, createStores } from './store';
import { followSettings } from './store/settings';
import { checkTemporal } from './temporal/attributes';
import { connectTemporal } from './temporal/connect';
import { createTemporalDoor } from './temporal/door';
import { createRedeliveries } from './temporal/redeliveries';
import { startTracing } from './tracing/start';
import { traceStarts } from './tracing/temporal';

/** Longer than a create waits for its workflow. */
const GRACE_MS = 10_000;

/** Runs the API process. */
async function main(): Promise<void> {
  const config = readConfig();
  const log = createLogger('api', config.LOG_LEVEL);
  const stopBy = listenForStop(log);
  const mongo = await connectMongo(config.MONGODB_URI, 'api');
  const settings = followSettings(mongo.db(config.MONGODB_DB), log);
  const stores = createStores(mongo.db(config.MONGODB_DB), settings);
  await checkIndexes(stores, log);
  const tracing = await startTracing('api', config, log);
  const starts = tracing === undefined ? [] : [traceStarts(tracing)];
  const client = connectTemporal(config.temporal, undefined, starts);
  await checkTemporal({ ...config.temporal, connection: client.connection }, log, isLive(config));
  const registry = createRegistry();
  const { lifecycleQueue, webhookQueue } = taskQueues(config.TASK_QUEUE_PREFIX);
  const now = () => new Date();
  const meter = createCallbackMeter(registry);
  const { KEYS_FILE, KEYS_DIR, KEYS_COMMAND } = config;
  if (KEYS_COMMAND === '') warnOfReaders(KEYS_FILE, log);
  const keys = followRings(KEYS_FILE, undefined, KEYS_COMMAND);
  const recipientSealers =
    KEYS_DIR === '' ? undefined : createRecipientSealers(KEYS_DIR, KEYS_COMMAND);
  if (isLive(config) && recipientSealers === undefined) {
    log.warn('this process can open the recipients of live: see `keys split`');
  }
  const stopping = new AbortController();
  const app = createApp({
    config,
    mongo,
    stores,
    temporal: createTemporalDoor({ client, lifecycleQueue, stores, now, log, meter }),
    redeliveries: createRedeliveries({ temporal: client, webhookQueue, stores, now }),
    connectors: createConnectors(SANDBOX_CONNECTOR, config.LIVE_CONNECTORS),
    keys,
    sealer: createSealer(keys.seal),
    ...defined({ recipientSealers }),
    meter: createApiMeter(registry),
    stopping: stopping.signal,
    ...defined({ tracing }),
    now,
    log,
  });
  const figures = await serveMetrics(config, registry);
  const server = createHttpServer(app.callback());
  server.listen(config.PORT, config.HOST, () => log.info({ port: config.PORT }, 'api listens'));
  server.on('error', (err) => {
    log.fatal({ err }, 'api cannot listen');
    process.exit(1);
  });
  stopBy(async () => {
    stopping.abort();
    // Whoever balances the load sees /readyz turn, and sends no more before the listener closes.
    await sleep(config.DRAIN_MS);
    await closeServer(server, GRACE_MS);
    await figures.close();
    await tracing?.close();
    await client.connection.close();
    await settings.close();
    await mongo.close();
    process.exit(0);
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
