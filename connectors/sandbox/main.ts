import { createLogger } from '../../src/base/log';
import { createRegistry, serveMetrics } from '../../src/base/metrics-page';
import { connectMongo } from '../../src/base/mongo';
import { exitAfter, listenForStop } from '../../src/base/process';
import { createCallbackMeter } from '../../src/callbacks/metrics';
import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { createDetailsDecrypter } from '../../src/encryption/recipient-keys';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { sandboxBankDatabase } from '../../src/service/sandbox-bank/movements';
import { createStores } from '../../src/store';
import { connectTemporal } from '../../src/temporal/connect';
import { connectNative, installRuntime } from '../../src/temporal/native';
import { readConnectorKey } from '../contract/callbacks';
import { createGuardMeter } from '../contract/guard';
import { createRecipientDecrypter, createReferenceReader } from '../contract/recipients';
import { createSandboxBank } from './bank';
import { readSandboxBankConfig } from './config';

async function main(): Promise<void> {
  const config = readSandboxBankConfig();
  const log = createLogger('sandbox-bank', config.LOG_LEVEL);
  const onStop = listenForStop(log);
  const sdkMetrics = await installRuntime(log, config.METRICS_PORT !== undefined);
  const registry = createRegistry();

  const [mongo, connection] = await Promise.all([
    connectMongo(config.MONGODB_URI, 'sandbox-bank'),
    connectNative(config.temporal),
  ]);
  const temporal = connectTemporal(config.temporal);
  const stores = createStores(mongo.db(config.MONGODB_DB));
  const encrypter = createDetailsDecrypter(config.KEYS_DIR, 'sandbox');
  const bank = await createSandboxBank({
    mongo,
    database: sandboxBankDatabase(config.MONGODB_DB),
    stores,
    decryptRecipient: createRecipientDecrypter({
      ...stores,
      encrypter,
      connector: SANDBOX_CONNECTOR,
      log,
    }),
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
    guardMeter: createGuardMeter(registry),
    key: readConnectorKey(config.CONNECTOR_KEY_FILE),
    now: () => new Date(),
    log,
  });
  const metricsServer = await serveMetrics(config, registry, sdkMetrics);
  log.info({ address: bank.url }, 'the sandbox bank is open');

  onStop(bank.stop);
  await bank.finished;
  await bank.stop();
  await metricsServer.close();
  await Promise.all([connection.close(), temporal.connection.close(), mongo.close()]);
}

exitAfter(main());
