import { join } from 'node:path';
import { describeError, OperationalError } from '../src/base/errors';
import { readServers } from '../src/config';
import type { KeyPaths } from '../src/encryption/ensure-keys';
import type { TemporalAccess } from '../src/temporal/access';
import { startChild } from './child-process';
import type { StackConfig } from './config';
import type { PartName, StackState } from './data-dir';
import { type MongoUser, mongoUri, prepareMongo, startMongo } from './mongo-server';
import { LOOPBACK } from './ports';
import { findMongod } from './provision/mongod';
import type { ProvisionContext } from './provision/provision';
import { findTemporal } from './provision/temporal';
import type { Part } from './supervisor';
import { startTemporal } from './temporal-server';
import type { Progress } from './terminal';

const DIST = join(__dirname, '..');

/** Replays leave much garbage: a larger young space is collected less often. */
export const WORKER_FLAG = '--max-semi-space-size=32';

export const NODE_PARTS = {
  worker: { script: 'worker/main.js', flags: [WORKER_FLAG], graceMs: 25_000 },
  sandbox_bank: { script: 'connectors/sandbox/main.js', flags: [], graceMs: 15_000 },
  sepa: { script: 'connectors/sepa/main.js', flags: [], graceMs: 15_000 },
  api: { script: 'src/main.js', flags: [], graceMs: 12_000 },
} as const;

export type NodePartName = keyof typeof NODE_PARTS;
export const NODE_PART_NAMES = ['api', 'worker', 'sandbox_bank', 'sepa'] as const;

export interface Inspect {
  part: NodePartName;
  port: number;
}

/** Undefined for a server that runs elsewhere. */
interface Executables {
  temporal: string | undefined;
  mongod: string | undefined;
}

/** @throws OperationalError naming the invalid variable, or a server without TLS */
export async function findServers(
  { cacheDir, temporalAddress, mongodbUri }: StackConfig,
  { env, progress, signal }: Omit<ProvisionContext, 'cacheDir'>,
): Promise<Executables> {
  const { MONGODB_URI = '', ALLOW_CLEAR_TEXT = '' } = env;
  const context = { cacheDir, env, progress, signal };
  let remote: TemporalAccess;
  try {
    remote = readServers(env, { MONGODB_URI, ALLOW_CLEAR_TEXT });
  } catch (error) {
    throw new OperationalError(describeError(error));
  }
  const [temporal, mongod] = await Promise.all([
    findTemporal(temporalAddress === undefined ? undefined : remote, context),
    findMongod(mongodbUri, context),
  ]);
  return { temporal, mongod };
}

export type StackPart = Part<PartName>;

interface PartOptions {
  inspect?: Inspect;
  progress?: Pick<Progress, 'line'>;
}

export function logFile(config: StackConfig, part: PartName): string {
  return join(config.dataDir, 'logs', `${part}.log`);
}

export function stackParts(
  config: StackConfig,
  executables: Executables,
  childEnv: NodeJS.ProcessEnv,
  { inspect, progress }: PartOptions = {},
): StackPart[][] {
  const uri = mongoAddress(config);
  // The first process to start prepares MongoDB for all.
  let preparation: Promise<void> | undefined;
  const prepare = (signal: AbortSignal) => {
    preparation ??= prepareMongo(uri, config.mongodbDb, progress ?? { line: () => {} }, signal);
    return preparation;
  };
  const node = (name: NodePartName): StackPart => {
    const start = async (signal: AbortSignal) => {
      await prepare(signal);
      signal.throwIfAborted();
      const { script, flags, graceMs } = NODE_PARTS[name];
      const own = {
        ...childEnv,
        MONGODB_URI: mongoAddress(config, name),
        METRICS_PORT: String(config.metricsPorts[name]),
        // Only the worker has the password of the mail server.
        ...(name !== 'worker' && { SMTP_URL: '' }),
      };
      const isInspected = inspect?.part === name;
      const debug = isInspected ? [`--inspect=${LOOPBACK}:${inspect.port}`] : [];
      return await startChild({
        name,
        command: process.execPath,
        args: ['--enable-source-maps', ...flags, ...debug, join(DIST, script)],
        // Temporal's worker gives up workflow code that stops for seconds, as at a breakpoint.
        env: isInspected ? { ...own, TEMPORAL_DEBUG: 'true' } : own,
        logFile: logFile(config, name),
        ipc: true,
        graceMs,
      });
    };
    return { name, start };
  };
  const banks = [node('sandbox_bank'), ...(config.sepa === undefined ? [] : [node('sepa')])];
  return [serverParts(config, executables), [node('worker'), ...banks], [node('api')]];
}

function serverParts(config: StackConfig, { mongod, temporal }: Executables): StackPart[] {
  const parts: StackPart[] = [];
  if (mongod !== undefined) {
    const options = {
      executable: mongod,
      dbPath: join(config.dataDir, 'mongodb'),
      port: config.mongodbPort,
      logFile: logFile(config, 'mongodb'),
      login: config.mongodbLogin,
      database: config.mongodbDb,
    };
    parts.push({ name: 'mongodb', start: (signal) => startMongo({ ...options, signal }) });
  }
  if (temporal !== undefined) {
    const options = {
      executable: temporal,
      dbFile: join(config.dataDir, 'temporal', 'temporal.db'),
      port: config.temporalPort,
      uiPort: config.temporalUiPort,
      namespace: config.temporalNamespace,
      logFile: logFile(config, 'temporal'),
    };
    parts.push({ name: 'temporal', start: (signal) => startTemporal({ ...options, signal }) });
  }
  return parts;
}

export function mongoAddress(
  {
    mongodbUri,
    mongodbPort,
    mongodbLogin,
  }: Pick<StackConfig, 'mongodbUri' | 'mongodbPort' | 'mongodbLogin'>,
  user?: MongoUser,
): string {
  return mongodbUri ?? mongoUri(mongodbPort, mongodbLogin, user);
}

export function childEnvironment(
  config: StackConfig,
  keys: KeyPaths,
  env: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  const isRemote = (name: string) => /^TEMPORAL_(API_KEY|TLS|GRPC_META)/.test(name);
  const own =
    config.temporalAddress === undefined
      ? Object.fromEntries(Object.entries(env).filter(([name]) => !isRemote(name)))
      : env;
  return {
    ...own,
    PORT: String(config.port),
    DATA_DIR: config.dataDir,
    PUBLIC_URL: config.publicUrl,
    MONGODB_URI: mongoAddress(config),
    MONGODB_DB: config.mongodbDb,
    TEMPORAL_ADDRESS: config.temporalAddress ?? `${LOOPBACK}:${config.temporalPort}`,
    TEMPORAL_NAMESPACE: config.temporalNamespace,
    TASK_QUEUE_PREFIX: config.taskQueuePrefix,
    ...keys,
    CONNECTOR_STATE_DIR: env['CONNECTOR_STATE_DIR'] || join(config.dataDir, 'connectors'),
    SANDBOX_BANK_PORT: String(config.sandboxBankPort),
    SANDBOX_BANK_URL: `http://localhost:${config.sandboxBankPort}`,
    SANDBOX_AUTOPLAY: config.sandboxAutoplay,
    WEBHOOK_ALLOW_PRIVATE: allowPrivate(config),
    METRICS_HOST: LOOPBACK,
    DRAIN_MS: '0',
    LOG_LEVEL: config.logLevel,
  };
}

/** Allows sandbox endpoints plain http on this machine, unless live money moves. */
function allowPrivate({ live }: StackConfig): string {
  return live ? '' : 'sandbox';
}

function metricsUrl(port: number): string {
  return `http://${LOOPBACK}:${port}/metrics`;
}

export function initialState(config: StackConfig, keys: KeyPaths): StackState {
  const isTemporalOurs = config.temporalAddress === undefined;
  return {
    api: { pid: null, url: `http://localhost:${config.port}` },
    worker: { pid: null },
    sandbox_bank: { pid: null },
    ...(config.sepa && { sepa: { pid: null } }),
    temporal: {
      pid: null,
      address: config.temporalAddress ?? `${LOOPBACK}:${config.temporalPort}`,
      ui_url: isTemporalOurs ? `http://localhost:${config.temporalUiPort}` : null,
      namespace: config.temporalNamespace,
    },
    mongodb: { pid: null, uri: mongoAddress(config) },
    metrics: {
      api: metricsUrl(config.metricsPorts.api),
      worker: metricsUrl(config.metricsPorts.worker),
      sandbox_bank: metricsUrl(config.metricsPorts.sandbox_bank),
      ...(config.sepa && { sepa: metricsUrl(config.metricsPorts.sepa) }),
    },
    settings: {
      MONGODB_DB: config.mongodbDb,
      TASK_QUEUE_PREFIX: config.taskQueuePrefix,
      ...keys,
      WEBHOOK_ALLOW_PRIVATE: allowPrivate(config),
      PUBLIC_URL: config.publicUrl,
      LIVE_CONNECTORS: config.liveConnectors,
      SANDBOX_CONNECTORS: config.sandboxConnectors,
      ...(config.sepa && { SEPA_IN_DIR: config.sepa.dir, SEPA_IBAN: config.sepa.iban }),
    },
  };
}
