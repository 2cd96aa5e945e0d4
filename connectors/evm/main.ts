import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from '@temporalio/worker';
import { parseGwei } from 'viem';
import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { LIVE_DEMO_ALLOWED } from '../../src/live';
import { createLogger } from '../../src/log';
import { createCallbackMeter } from '../../src/metrics/callbacks';
import { createRegistry, serveMetrics } from '../../src/metrics/page';
import { connectMongo } from '../../src/mongo';
import { listenForStop } from '../../src/process';
import { createStores } from '../../src/store';
import { checkTemporal } from '../../src/temporal/attributes';
import { connectTemporal } from '../../src/temporal/connect';
import { connectNative, installRuntime } from '../../src/temporal/native';
import { deliverCallback, readConnectorKey } from '../contract/callbacks';
import { createInstructionGuard } from '../contract/guard';
import { assertPrivate, type EvmConfig, readEvmConfig } from './config';
import { createEvm, type EvmSettings } from './evm';
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
  const stopBy = listenForStop(log);
  const sdkFigures = await installRuntime(log, config.METRICS_PORT !== undefined);
  const registry = createRegistry();
  const nodeUrl = lineOf(config.EVM_RPC_URL_FILE);
  assertPrivate(config, nodeUrl);
  const key = readConnectorKey(config.CONNECTOR_KEY_FILE);
  const account = await openKeystore(
    readFileSync(config.EVM_KEYSTORE_FILE, 'utf8'),
    lineOf(config.EVM_KEYSTORE_PASSWORD_FILE),
  );
  const [mongo, connection] = await Promise.all([
    connectMongo(config.MONGODB_URI, connector),
    connectNative(config.temporal),
  ]);
  const { namespace } = config.temporal;
  const isLive = config.ALLOW_LIVE_DEMO !== LIVE_DEMO_ALLOWED;
  await checkTemporal({ connection, namespace }, log, isLive);
  const temporal = connectTemporal(config.temporal);
  const now = () => new Date();
  const stores = createStores(mongo.db(config.MONGODB_DB));
  const { lifecycleQueue } = taskQueues(config.TASK_QUEUE_PREFIX);
  const meter = createCallbackMeter(registry);
  const inbox = { stores, temporal, lifecycleQueue, now, log, meter, key };
  const assertCurrent = createInstructionGuard(stores);
  const evm = createEvm({
    mongo,
    database: `${config.MONGODB_DB}_${connector}`,
    node: createNode(nodeUrl),
    key: readExtendedKey(lineOf(config.EVM_XPUB_FILE)),
    account,
    ...settingsIn(config),
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
  const stopped = once(signal, 'abort');
  stopBy(async () => stopping.abort());
  const figures = await serveMetrics(config, registry, sdkFigures);
  const rounds = { evm, pollMs: config.EVM_POLL_MS, signal, log };
  await beginPatiently(rounds);
  if (!signal.aborted) {
    const worker = await Worker.create({
      connection,
      namespace,
      taskQueue: connectorQueue(connector, config.TASK_QUEUE_PREFIX),
      activities: evm.activities,
      shutdownGraceTime: SHUTDOWN_GRACE,
    });
    log.info({ address: account.address }, 'the chain is followed');
    await Promise.all([worker.runUntil(stopped), workInRounds(rounds)]);
  }
  await figures.close();
  await Promise.all([connection.close(), temporal.connection.close(), mongo.close()]);
}

function settingsIn(config: EvmConfig): EvmSettings {
  return {
    chainId: config.EVM_CHAIN_ID,
    assets: { usdc: config.EVM_USDC_ADDRESS },
    confirmations: config.EVM_CONFIRMATIONS,
    startBlock: config.EVM_START_BLOCK,
    traces: config.EVM_TRACES === 'on',
    feeCap: parseGwei(config.EVM_FEE_MAX_GWEI),
    raiseAfterMs: config.EVM_RAISE_SECONDS * 1_000,
  };
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
