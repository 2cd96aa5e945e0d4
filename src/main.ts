import { createApp } from './api/app';
import { closeServer, createHttpServer } from './api/server';
import { readConfig, readKeys } from './config';
import { taskQueues } from './domain/task-queues';
import { followKeys } from './keys/ring';
import { createSealer } from './keys/seal';
import { createLogger } from './log';
import { connectMongo } from './mongo';
import { onStop } from './process';
import { createConnectors, SANDBOX_CONNECTOR } from './routing';
import { beginIndexes, createStores } from './store';
import { followSettings } from './store/settings';
import { connectTemporal } from './temporal/connect';
import { createTemporalDoor } from './temporal/door';
import { createRedeliveries } from './temporal/redeliveries';

const GRACE_MS = 10_000;

/** Runs the API process. */
async function main(): Promise<void> {
  const config = readConfig();
  const log = createLogger('api', config.LOG_LEVEL);
  const mongo = await connectMongo(config.MONGODB_URI, 'api');
  await beginIndexes({ uri: config.MONGODB_URI, database: config.MONGODB_DB }, log);
  const settings = followSettings(mongo.db(config.MONGODB_DB), log);
  const stores = createStores(mongo.db(config.MONGODB_DB), settings);
  const client = connectTemporal({
    address: config.TEMPORAL_ADDRESS,
    namespace: config.TEMPORAL_NAMESPACE,
  });
  const { lifecycleQueue, webhookQueue } = taskQueues(config.TASK_QUEUE_PREFIX);
  const now = () => new Date();
  const app = createApp({
    config,
    mongo,
    stores,
    temporal: createTemporalDoor({ client, lifecycleQueue, stores, now, log }),
    redeliveries: createRedeliveries({ temporal: client, webhookQueue, stores, now }),
    connectors: createConnectors(SANDBOX_CONNECTOR, config.LIVE_CONNECTORS),
    keys: readKeys(config.KEYS_FILE),
    sealer: createSealer(followKeys(config.KEYS_FILE)),
    now,
    log,
  });
  const server = createHttpServer(app.callback());
  server.listen(config.PORT, config.HOST, () => log.info({ port: config.PORT }, 'api listens'));
  server.on('error', (err) => {
    log.fatal({ err }, 'api cannot listen');
    process.exit(1);
  });
  onStop(log, async () => {
    await closeServer(server, GRACE_MS);
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
