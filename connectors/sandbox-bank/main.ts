import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { recipientOpener } from '../../src/keys/recipient-rings';
import { createLogger } from '../../src/log';
import { createCallbackMeter } from '../../src/metrics/callbacks';
import { createRegistry, serveMetrics } from '../../src/metrics/page';
import { connectMongo } from '../../src/mongo';
import { listenForStop } from '../../src/process';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { createStores } from '../../src/store';
import { connectTemporal } from '../../src/temporal/connect';
import { connectNative, installRuntime } from '../../src/temporal/native';
import { readConnectorKey } from '../contract/callbacks';
import { createRecipientOpener, createReferenceReader } from '../contract/recipients';
import { createSandboxBank } from './bank';
import { readSandboxBankConfig } from './config';

async function main(): Promise<void> {
  const config = readSandboxBankConfig();
  const log = createLogger('sandbox-bank', config.LOG_LEVEL);
  const stopBy = listenForStop(log);
  const sdkFigures = await installRuntime(log, config.METRICS_PORT !== undefined);
  const registry = createRegistry();

  const [mongo, connection] = await Promise.all([
    connectMongo(config.MONGODB_URI, 'sandbox-bank'),
    connectNative(config.temporal),
  ]);
  const temporal = connectTemporal(config.temporal);
  const stores = createStores(mongo.db(config.MONGODB_DB));
  const sealer = recipientOpener(config, ['sandbox']);
  const bank = await createSandboxBank({
    mongo,
    database: `${config.MONGODB_DB}_sandbox_bank`,
    stores,
    openRecipient: createRecipientOpener({ ...stores, sealer, connector: SANDBOX_CONNECTOR, log }),
    readReference: createReferenceReader({ payouts: stores.payouts }),
    temporal,
    connection,
    taskQueue: connectorQueue(SANDBOX_CONNECTOR, config.TASK_QUEUE_PREFIX),
    lifecycleQueue: taskQueues(config.TASK_QUEUE_PREFIX).lifecycleQueue,
    host: config.HOST,
    port: config.SANDBOX_BANK_PORT,
    publicUrl: config.SANDBOX_BANK_URL,
    autoplay: config.SANDBOX_AUTOPLAY === 'on',
    meter: createCallbackMeter(registry),
    key: readConnectorKey(config.CONNECTOR_KEY_FILE),
    now: () => new Date(),
    log,
  });
  const figures = await serveMetrics(config, registry, sdkFigures);
  log.info({ address: bank.url }, 'the sandbox bank is open');

  stopBy(bank.stop);
  await bank.finished;
  await bank.stop();
  await figures.close();
  await Promise.all([connection.close(), temporal.connection.close(), mongo.close()]);
}

main().then(
  // Without this the launcher's channel would keep the process up.
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? (error.stack ?? error.message) : error);
    process.exit(1);
  },
);
