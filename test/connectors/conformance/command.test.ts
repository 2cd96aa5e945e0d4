import { NativeConnection } from '@temporalio/worker';
import {
  createRecipientDecrypter,
  createReferenceReader,
} from '../../../connectors/contract/recipients';
import { createSandboxBank } from '../../../connectors/sandbox/bank';
import { createLogger } from '../../../src/base/log';
import { connectorQueue, taskQueues } from '../../../src/domain/task-queues';
import { createDetailsDecrypter } from '../../../src/encryption/recipient-keys';
import { sandboxBankDatabase } from '../../../src/service/sandbox-bank/movements';
import { commandsIn } from '../../cli/cli';
import { useFixture } from '../../support/fixture';
import { mongodbUri, temporalAddress } from '../../support/servers';
import { openBench } from './setting';

const bench = useFixture(
  () => openBench('sandbox'),
  (opened) => opened.stop(),
);

useFixture(
  async () => {
    const { mongo, stores, temporal, database, prefix, keysDir } = bench;
    const log = createLogger('sandbox-bank', process.env['TEST_LOG_LEVEL'] ?? 'silent');
    const connection = await NativeConnection.connect({ address: temporalAddress() });
    const opened = await createSandboxBank({
      ...{ mongo, stores, temporal, connection, log, now: () => new Date() },
      ...{ database: sandboxBankDatabase(database), taskQueue: connectorQueue('sandbox', prefix) },
      ...{ host: '127.0.0.1', port: 0, autoplay: true },
      lifecycleQueue: taskQueues(prefix).lifecycleQueue,
      decryptRecipient: createRecipientDecrypter({
        ...{ ...stores, log, connector: 'sandbox' },
        encrypter: createDetailsDecrypter(keysDir, 'sandbox'),
      }),
      readReference: createReferenceReader(stores),
    });
    return { stop: () => opened.stop().then(() => connection.close()) };
  },
  (opened) => opened.stop(),
);

const commands = (changes: NodeJS.ProcessEnv = {}) =>
  commandsIn({
    ...{ MONGODB_URI: mongodbUri(), MONGODB_DB: bench.database, KEYS_DIR: bench.keysDir },
    ...{ TEMPORAL_ADDRESS: temporalAddress(), TASK_QUEUE_PREFIX: bench.prefix, DATA_DIR: '/none' },
    ...changes,
  });

test('the sandbox bank keeps every promise, which the command prints as a table', async () => {
  const { exit, stdout, stderr } = await commands().cli('connector', 'check', 'sandbox');
  expect({ exit, stderr: stderr.match(/^failed.*$/gm) }).toEqual({ exit: 0, stderr: null });
  expect(stdout).toMatch(/^RESULT +NAME +PROMISE +SEEN\n/);
  expect(stdout).toMatch(/^passed +payout\.repeat .* three times sent, once at the bank$/m);
  expect(stdout).toMatch(/^n\/a +payout\.outage .* It needs the proxy in front of the bank\.$/m);
  expect(stdout).toMatch(/\n\n\d+ passed, 0 failed, \d+ not applicable\.\n$/);
});

test.each([
  ['that nobody runs', 'acme', {}, 'connector_not_running'],
  ['that nothing is routed to', 'nobody', {}, 'connector_unknown'],
  ['that is live', 'big', {}, 'connector_unknown'],
  ['that is none', 'a b', {}, 'connector_name_invalid'],
])('a connector %s is refused', async (_case, name, changes, code) => {
  const routes = {
    ...{ SANDBOX_CONNECTORS: 'acme=ideal', LIVE_CONNECTORS: 'big=visa' },
    ...{ TASK_QUEUE_PREFIX: `${bench.prefix}-other`, ...changes },
  };
  const error = await commands(routes).refusal('connector', 'check', name);
  expect(error.code).toBe(code);
});

test('a proxy without a port is refused', async () => {
  const error = await commands().refusal(
    'connector',
    'check',
    'sandbox',
    '--bank',
    'http://a.example',
  );
  expect(error.code).toBe('invalid_usage');
});

test('a database of the service is refused', async () => {
  const accounts = bench.mongo
    .db(bench.database)
    .collection<{ _id: string; name: string }>('accounts');
  await accounts.insertOne({ _id: 'acct_of_a_merchant', name: 'A shop' });
  const error = await commands().refusal('connector', 'check', 'sandbox');
  expect(error).toEqual({
    code: 'check_database_used',
    message: expect.stringContaining('MONGODB_DB'),
  });
});
