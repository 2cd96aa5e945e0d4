import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Runtime } from '@temporalio/worker';
import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { followKeys } from '../../src/keys/ring';
import { createSealer } from '../../src/keys/seal';
import { createLogger } from '../../src/log';
import { connectMongo } from '../../src/mongo';
import { onStop } from '../../src/process';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { createStores } from '../../src/store';
import { temporalLogger } from '../../src/temporal/log';
import { createRecipientOpener, createReferenceReader } from '../contract/recipients';
import { createSandboxBank } from './bank';
import { readSandboxBankConfig } from './config';

async function main(): Promise<void> {
  const config = readSandboxBankConfig();
  const log = createLogger('sandbox-bank', config.LOG_LEVEL);
  Runtime.install({ logger: temporalLogger(log), shutdownSignals: [] });

  const address = config.TEMPORAL_ADDRESS;
  const [mongo, clientConnection, connection] = await Promise.all([
    connectMongo(config.MONGODB_URI, 'sandbox-bank'),
    Connection.connect({ address }),
    NativeConnection.connect({ address }),
  ]);
  const stores = createStores(mongo.db(config.MONGODB_DB));
  const sealer = createSealer(followKeys(config.KEYS_FILE));
  const bank = await createSandboxBank({
    mongo,
    database: `${config.MONGODB_DB}_sandbox_bank`,
    stores,
    openRecipient: createRecipientOpener({ recipients: stores.recipients, sealer }),
    readReference: createReferenceReader({ payouts: stores.payouts }),
    temporal: new Client({ connection: clientConnection, namespace: config.TEMPORAL_NAMESPACE }),
    connection,
    taskQueue: connectorQueue(SANDBOX_CONNECTOR, config.TASK_QUEUE_PREFIX),
    lifecycleQueue: taskQueues(config.TASK_QUEUE_PREFIX).lifecycleQueue,
    host: config.HOST,
    port: config.SANDBOX_BANK_PORT,
    publicUrl: config.SANDBOX_BANK_URL,
    autoplay: config.SANDBOX_AUTOPLAY === 'on',
    now: () => new Date(),
    log,
  });
  log.info({ address: bank.url }, 'the sandbox bank is open');

  onStop(log, bank.stop);
  await bank.finished;
  await bank.stop();
  await Promise.all([connection.close(), clientConnection.close(), mongo.close()]);
}

main().then(
  // Without this the launcher's channel would keep the process up.
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? (error.stack ?? error.message) : error);
    process.exit(1);
  },
);
