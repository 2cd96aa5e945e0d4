import { readFileSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { parseGwei } from 'viem';
import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { createLogger } from '../../src/log';
import { connectMongo } from '../../src/mongo';
import { onStop } from '../../src/process';
import { createStores } from '../../src/store';
import { temporalLogger } from '../../src/temporal/log';
import { deliverCallback } from '../contract/callbacks';
import { createInstructionGuard } from '../contract/guard';
import { readEvmConfig } from './config';
import { createEvm } from './evm';
import { readExtendedKey } from './extended-key';
import { openKeystore } from './keystore';
import { createNode } from './node';
import { createRates } from './rates';
import type { Report } from './report';
import { beginPatiently, workInRounds } from './rounds';
import { createScreening } from './screening';

/** Time for a delivery, after which the report is tried again. */
const DELIVERY_MS = 4_000;
const SHUTDOWN_GRACE = '10s';

async function main(): Promise<void> {
  const config = readEvmConfig();
  const connector = config.EVM_CONNECTOR;
  const log = createLogger(connector, config.LOG_LEVEL);
  Runtime.install({ logger: temporalLogger(log), shutdownSignals: [] });
  const account = await openKeystore(
    readFileSync(config.EVM_KEYSTORE_FILE, 'utf8'),
    lineOf(config.EVM_KEYSTORE_PASSWORD_FILE),
  );
  const address = config.TEMPORAL_ADDRESS;
  const [mongo, clientConnection, connection] = await Promise.all([
    connectMongo(config.MONGODB_URI, connector),
    Connection.connect({ address }),
    NativeConnection.connect({ address }),
  ]);
  const now = () => new Date();
  const stores = createStores(mongo.db(config.MONGODB_DB));
  const namespace = config.TEMPORAL_NAMESPACE;
  const temporal = new Client({ connection: clientConnection, namespace });
  const { lifecycleQueue } = taskQueues(config.TASK_QUEUE_PREFIX);
  const inbox = { stores, temporal, lifecycleQueue, now, log };
  const assertCurrent = createInstructionGuard(stores);
  const evm = createEvm({
    mongo,
    database: `${config.MONGODB_DB}_${connector}`,
    node: createNode(lineOf(config.EVM_RPC_URL_FILE)),
    key: readExtendedKey(lineOf(config.EVM_XPUB_FILE)),
    account,
    chainId: config.EVM_CHAIN_ID,
    assets: { usdc: config.EVM_USDC_ADDRESS },
    confirmations: config.EVM_CONFIRMATIONS,
    startBlock: config.EVM_START_BLOCK,
    traces: config.EVM_TRACES === 'on',
    feeCap: parseGwei(config.EVM_FEE_MAX_GWEI),
    raiseAfterMs: config.EVM_RAISE_SECONDS * 1_000,
    rates: createRates({ place: config.EVM_RATES, ageSecondsMax: config.EVM_RATES_SECONDS }, now),
    screening: createScreening(config.EVM_SCREENING_FILE),
    deliver: (report: Report) =>
      temporal.withDeadline(Date.now() + DELIVERY_MS, () =>
        deliverCallback(inbox, { connector, ...report }),
      ),
    assertCurrent: ({ crypto_settlement_id: id, version }) =>
      assertCurrent({ resource: 'crypto_settlement', id, version }),
    pass: () => undefined,
    now,
    log,
  });

  const stopping = new AbortController();
  const { signal } = stopping;
  let worker: Worker | undefined;
  onStop(log, async () => {
    stopping.abort();
    if (worker?.getState() === 'RUNNING') worker.shutdown();
  });
  const rounds = { evm, pollMs: config.EVM_POLL_MS, signal, log };
  await beginPatiently(rounds);
  if (!signal.aborted) {
    worker = await Worker.create({
      connection,
      namespace,
      taskQueue: connectorQueue(connector, config.TASK_QUEUE_PREFIX),
      activities: evm.activities,
      shutdownGraceTime: SHUTDOWN_GRACE,
    });
    log.info({ address: account.address }, 'the chain is followed');
    await Promise.all([worker.run(), workInRounds(rounds)]);
  }
  await Promise.all([connection.close(), clientConnection.close(), mongo.close()]);
}

/** Reads a file of one line. */
function lineOf(path: string): string {
  return readFileSync(path, 'utf8').trim();
}

main().then(
  // Without this the launcher's channel would keep the process up.
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? (error.stack ?? error.message) : error);
    process.exit(1);
  },
);
