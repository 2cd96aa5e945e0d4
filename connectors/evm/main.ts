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
import { createGuardMeter, createInstructionGuard } from '../contract/guard';
import { type Asset, NETWORK } from './assets';
import { runCommand } from './commands';
import { assertTls, CHECK_ALL, DEPOSIT_MIN, type EvmConfig, readEvmConfig } from './config';
import { createEvm, type EvmSettings } from './evm';
import { readExtendedKey } from './extended-key';
import { decryptKeystore } from './keystore';
import { createEvmMeter } from './metrics';
import { createNode, SECOND_NODE } from './node';
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
  const secondUrl = settings.check_rpc_url_file && readLine(settings.check_rpc_url_file);
  assertTls(config, { node: nodeUrl, secondNode: secondUrl });
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
  const readRates = (location: string) =>
    createRates({ location, ageSecondsMax: settings.rates_seconds }, now);
  const inbox = { stores, temporal, lifecycleQueue, now, log, meter, key };
  const guardMeter = createGuardMeter(registry);
  const guard = createInstructionGuard({ ...stores, connector, log, meter: guardMeter });
  const evm = createEvm({
    mongo,
    database: `${config.MONGODB_DB}_${connector}`,
    node: createNode(nodeUrl),
    secondNode: secondUrl === undefined ? undefined : createNode(secondUrl, SECOND_NODE),
    key: readExtendedKey(readLine(settings.xpub_file)),
    account,
    ...toEvmSettings(settings),
    rates: readRates(settings.rates),
    secondRates: settings.rates_check === undefined ? undefined : readRates(settings.rates_check),
    screening: createScreening(settings.screening_file),
    deliver: (report: Report) =>
      temporal.withDeadline(Date.now() + DELIVERY_MS, () =>
        deliverCallback(inbox, { connector, ...report }),
      ),
    findTaken: (addresses) => stores.crypto_payments.takenAddresses(NETWORK, addresses),
    findOutdated: (instruction) => guard.findOutdated('crypto_settlement', instruction),
    meter: createEvmMeter(registry),
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
    checkAbove: toUnits(settings.check_above ?? CHECK_ALL),
    least: toUnits(settings.deposit_min ?? DEPOSIT_MIN),
    rateChangeMax: settings.rate_change_max,
    rateDifferenceMax: settings.rate_difference_max,
    feeCap: parseGwei(settings.fee_max_gwei),
    raiseAfterMs: settings.raise_seconds * 1_000,
  };
}

function toUnits({ ETH, USDC }: Record<Asset, string>): Record<Asset, bigint> {
  return { ETH: BigInt(ETH), USDC: BigInt(USDC) };
}

function readLine(path: string): string {
  return readFileSync(path, 'utf8').trim();
}

/** Runs one command on the database of the connector, instead of the connector. */
async function command(args: string[]): Promise<void> {
  const { settings, MONGODB_URI, MONGODB_DB, LOG_LEVEL } = readEvmConfig();
  const mongo = await connectMongo(MONGODB_URI, settings.connector);
  try {
    const db = mongo.db(`${MONGODB_DB}_${settings.connector}`);
    const log = createLogger(settings.connector, LOG_LEVEL);
    const result = await runCommand({ db, now: () => new Date(), log }, args);
    process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
  } finally {
    await mongo.close();
  }
}

const args = process.argv.slice(2);
exitAfter(args.length === 0 ? main() : command(args));
