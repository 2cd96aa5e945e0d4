import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from '@temporalio/worker';
import { parseGwei } from 'viem';
import { LIVE_DEMO_ALLOWED } from '../../src/base/live';
import { createLogger } from '../../src/base/log';
import { createRegistry, serveMetrics } from '../../src/base/metrics-page';
import { connectMongo } from '../../src/base/mongo';
import { exitAfter, listenForStop } from '../../src/base/process';
import { createCallbackMeter } from '../../src/callbacks/metrics';
import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { createStores } from '../../src/store';
import { checkTemporal } from '../../src/temporal/attributes';
import { connectTemporal } from '../../src/temporal/connect';
import { connectNative, installRuntime } from '../../src/temporal/native';
import { deliverCallback, readConnectorKey } from '../contract/callbacks';
import { createInstructionGuard } from '../contract/guard';
import { assertTls, type EvmConfig, readEvmConfig } from './config';
import { createEvm, type EvmSettings } from './evm';
import { readExtendedKey } from './extended-key';
import { decryptKeystore } from './keystore';
import { createNode } from './node';
import { createRates } from './rates';
import type { Report } from './report';
import { beginWithRetry, runRounds } from './rounds';
import { createScreening } from './screening';

/** Time for a delivery, after which the report is tried again. */
const DELIVERY_MS = 4_000;
const SHUTDOWN_GRACE = '10s';

async function main(): Promise<void> {
  const config = readEvmConfig();
  const { settings } = config;
  const { connector } = settings;
  const log = createLogger(connector, config.LOG_LEVEL);
  const onStop = listenForStop(log);
  const sdkMetrics = await installRuntime(log, config.METRICS_PORT !== undefined);
  const registry = createRegistry();
  const nodeUrl = readLine(settings.rpc_url_file);
  assertTls(config, nodeUrl);
  const key = readConnectorKey(config.CONNECTOR_KEY_FILE);
  const account = await decryptKeystore(
    readFileSync(settings.keystore_file, 'utf8'),
    readLine(settings.keystore_password_file),
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
  const findOutdated = createInstructionGuard(stores);
  const evm = createEvm({
    mongo,
    database: `${config.MONGODB_DB}_${connector}`,
    node: createNode(nodeUrl),
    key: readExtendedKey(readLine(settings.xpub_file)),
    account,
    ...toEvmSettings(settings),
    rates: createRates({ location: settings.rates, ageSecondsMax: settings.rates_seconds }, now),
    screening: createScreening(settings.screening_file),
    deliver: (report: Report) =>
      temporal.withDeadline(Date.now() + DELIVERY_MS, () =>
        deliverCallback(inbox, { connector, ...report }),
      ),
    findOutdated: ({ crypto_settlement_id: id, version }) =>
      findOutdated({ resource: 'crypto_settlement', id, version }),
    now,
    log,
  });

  const stopping = new AbortController();
  const { signal } = stopping;
  const stopped = once(signal, 'abort');
  onStop(async () => stopping.abort());
  const metricsServer = await serveMetrics(config, registry, sdkMetrics);
  const rounds = { evm, pollMs: settings.poll_ms, signal, log };
  await beginWithRetry(rounds);
  if (!signal.aborted) {
    const worker = await Worker.create({
      connection,
      namespace,
      taskQueue: connectorQueue(connector, config.TASK_QUEUE_PREFIX),
      activities: evm.activities,
      shutdownGraceTime: SHUTDOWN_GRACE,
    });
    log.info({ address: account.address }, 'the chain is followed');
    await Promise.all([worker.runUntil(stopped), runRounds(rounds)]);
  }
  await metricsServer.close();
  await Promise.all([connection.close(), temporal.connection.close(), mongo.close()]);
}

function toEvmSettings(settings: EvmConfig['settings']): EvmSettings {
  return {
    chainId: settings.chain_id,
    assets: { usdc: settings.usdc_address },
    confirmations: settings.confirmations,
    startBlock: settings.start_block,
    traces: settings.traces,
    feeCap: parseGwei(settings.fee_max_gwei),
    raiseAfterMs: settings.raise_seconds * 1_000,
  };
}

function readLine(path: string): string {
  return readFileSync(path, 'utf8').trim();
}

exitAfter(main());
