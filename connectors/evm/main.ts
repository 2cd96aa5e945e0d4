import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { LIVE_DEMO_ALLOWED } from '../../src/base/live';
import { createLogger } from '../../src/base/log';
import { connectMongo } from '../../src/base/mongo';
import { exitAfter } from '../../src/base/process';
import { cryptoMethod } from '../../src/domain/crypto/assets';
import { checkDatabaseFormat } from '../../src/service/installation/epoch';
import { checkTemporal } from '../../src/temporal/attributes';
import { runWorkerUntil } from '../../src/temporal/native';
import { reportCapabilities } from '../kit/capabilities';
import { beginProcess } from '../kit/process';
import { openRestoreGuard } from '../kit/restore-guard';
import { type Asset, NETWORK } from './assets';
import { runCommand } from './commands';
import { assertTls, readEvmConfig, toChainSettings } from './config';
import { beginWithRetry, createEvm, runRounds } from './evm';
import { createEvmMeter } from './findings';
import { decryptKeystore, readExtendedKey } from './keys';
import { createNode, SECOND_NODE } from './node';
import { createRates } from './rates';
import type { Report } from './report';
import { createSettlements } from './settlements';

async function main(): Promise<void> {
  const config = readEvmConfig();
  const { settings } = config;
  const { connector } = settings;
  const { log, onStop, connect } = beginProcess({ connector }, config);
  const nodeUrl = readLine(settings.rpc_url_file);
  const secondUrl = settings.check_rpc_url_file && readLine(settings.check_rpc_url_file);
  assertTls(config, { node: nodeUrl, secondNode: secondUrl });
  const account = await decryptKeystore(
    readFileSync(settings.keystore_file, 'utf8'),
    readLine(settings.keystore_password_file),
  );
  const own = await connect();
  const { connection, namespace, stores, guard, now } = own;
  const isLive = config.ALLOW_LIVE_DEMO !== LIVE_DEMO_ALLOWED;
  await checkTemporal({ connection, namespace }, log, isLive);
  const readRates = (location: string) =>
    createRates({ location, ageSecondsMax: settings.rates_seconds }, now);
  const database = `${config.MONGODB_DB}_${connector}`;
  const db = own.mongo.db(database);
  const restoreGuard = await openRestoreGuard(own, {
    ...{ environment: config.environment, dir: config.CONNECTOR_STATE_DIR, db },
    book: { hasSent: createSettlements(db).hasSent },
  });
  const evm = createEvm({
    ...{ mongo: own.mongo, database },
    node: createNode(nodeUrl),
    secondNode: secondUrl === undefined ? undefined : createNode(secondUrl, SECOND_NODE),
    key: readExtendedKey(readLine(settings.xpub_file)),
    account,
    ...toChainSettings(settings),
    rates: readRates(settings.rates),
    secondRates: settings.rates_check === undefined ? undefined : readRates(settings.rates_check),
    screeningFile: settings.screening_file,
    deliver: (report: Report) => own.deliver(report),
    findTaken: (addresses) => stores.crypto_payments.takenAddresses(NETWORK, addresses),
    findOutdated: async (instruction) => {
      await restoreGuard.confirm();
      return await guard.findOutdated('crypto_settlement', instruction);
    },
    maySend: async () => (await restoreGuard.check()) === null,
    meter: createEvmMeter(own.registry),
    now,
    log,
  });

  const stopping = new AbortController();
  const { signal } = stopping;
  const stopped = once(signal, 'abort');
  onStop(async () => stopping.abort());
  const metricsServer = await own.serveMetrics();
  const rounds = { evm, pollMs: settings.poll_ms, signal, log };
  await beginWithRetry(rounds);
  if (!signal.aborted) {
    const worker = await own.createWorker(restoreGuard.protect(evm.activities));
    log.info({ address: account.address }, 'the chain is followed');
    const served: Asset[] = settings.usdc_address === undefined ? ['ETH'] : ['ETH', 'USDC'];
    const capabilities = {
      serves: served.map((asset) => cryptoMethod({ asset, network: NETWORK })),
      functions: Object.keys(evm.activities).toSorted(),
    };
    const report = reportCapabilities(own, capabilities, { restoreGuard });
    await Promise.all([runWorkerUntil(worker, stopped), runRounds(rounds)]).finally(report.stop);
  }
  await metricsServer.close();
  await own.close();
}

function readLine(path: string): string {
  return readFileSync(path, 'utf8').trim();
}

async function command(args: string[]): Promise<void> {
  const { settings, MONGODB_URI, MONGODB_DB, LOG_LEVEL } = readEvmConfig();
  const mongo = await connectMongo(MONGODB_URI, settings.connector);
  try {
    await checkDatabaseFormat(mongo.db(MONGODB_DB));
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
