import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { OperationalError } from '../src/base/errors';
import { isLive, LIVE_DEMO_ALLOWED } from '../src/base/live';
import { INSTANT_RAIL, SEPA_CONNECTOR } from '../src/service/banks/sepa/book';
import { LIBRARY_VARIABLES, VARIABLES } from '../src/variables';
import { readJson, replaceFile } from './data-dir';
import { mongoLogin } from './mongo-server';
import { freePort, isPortFree, reservePorts } from './ports';
import { cacheDirectory } from './provision/provision';
import type { Progress } from './terminal';

const UI_PORT = 8233;

const { TEMPORAL_ADDRESS, MONGODB_URI, SANDBOX_BANK_PORT, ...shape } = VARIABLES.shape;

const Environment = z
  .object({
    ...shape,
    TEMPORAL_ADDRESS: TEMPORAL_ADDRESS.unwrap().optional(),
    MONGODB_URI: MONGODB_URI.optional(),
    SANDBOX_BANK_PORT: SANDBOX_BANK_PORT.unwrap().optional(),
    TEMPORAL_NAMESPACE: LIBRARY_VARIABLES.shape.TEMPORAL_NAMESPACE,
  })
  .pick({
    PORT: true,
    DATA_DIR: true,
    PUBLIC_URL: true,
    TEMPORAL_ADDRESS: true,
    TEMPORAL_NAMESPACE: true,
    TEMPORAL_UI_PORT: true,
    TASK_QUEUE_PREFIX: true,
    MONGODB_URI: true,
    MONGODB_DB: true,
    LIVE_CONNECTORS: true,
    SANDBOX_CONNECTORS: true,
    ALLOW_LIVE_DEMO: true,
    TRUSTED_PROXIES: true,
    SANDBOX_BANK_PORT: true,
    SANDBOX_AUTOPLAY: true,
    SEPA_OUT_DIR: true,
    SEPA_IN_DIR: true,
    SEPA_IBAN: true,
    SEPA_NAME: true,
    SEPA_POLL_SECONDS: true,
    SEPA_FILE_MIN: true,
    SEPA_INSTANT: true,
    SEPA_INSTANT_SECONDS: true,
    SEPA_INSTANT_FINAL: true,
    SEPA_INSTANT_OVERDUE_SECONDS: true,
    LOG_LEVEL: true,
  });

export type StackConfig = Awaited<ReturnType<typeof decideConfig>>;

type StackEnvironment = z.infer<typeof Environment>;

/**
 * Reads the environment; an empty variable counts as not set.
 * @throws OperationalError naming every variable at fault
 */
export function readEnvironment(env: NodeJS.ProcessEnv): StackEnvironment {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const result = Environment.safeParse(set);
  const faults = result.success
    ? [...demoFaults(result.data), ...sepaFaults(result.data)]
    : result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  if (result.success && faults.length === 0) return result.data;
  throw new OperationalError(`The environment is not usable.\n  ${faults.join('\n  ')}`);
}

/** Lists what is made for demos, and must not hold live money. */
function demoFaults(environment: StackEnvironment): string[] {
  if (!isLive(environment)) return [];
  const missing = [
    ...(environment.TEMPORAL_ADDRESS === undefined ? ['TEMPORAL_ADDRESS'] : []),
    ...(environment.MONGODB_URI === undefined ? ['MONGODB_URI'] : []),
    ...(environment.PUBLIC_URL?.startsWith('https://') ? [] : ['an https PUBLIC_URL']),
    ...(environment.TRUSTED_PROXIES === '' ? ['TRUSTED_PROXIES'] : []),
  ];
  if (missing.length === 0) return [];
  return [
    `LIVE_CONNECTORS: real money needs servers of your own. Set ${missing.join(', ')}; or set ` +
      `ALLOW_LIVE_DEMO=${LIVE_DEMO_ALLOWED} to try a bank out with what npm start runs.`,
  ];
}

function sepaFaults(environment: StackEnvironment): string[] {
  const { SEPA_OUT_DIR, SEPA_INSTANT, LIVE_CONNECTORS, SANDBOX_CONNECTORS } = environment;
  if (SEPA_OUT_DIR === '') return [];
  const missing = (['SEPA_IN_DIR', 'SEPA_IBAN', 'SEPA_NAME'] as const)
    .filter((name) => environment[name] === '')
    .map((name) => `${name}: the SEPA connector, which SEPA_OUT_DIR starts, needs it.`);
  const routes = `${LIVE_CONNECTORS},${SANDBOX_CONNECTORS}`.split(',');
  const own = routes.filter((route) => route.trim().startsWith(`${SEPA_CONNECTOR}=`));
  if (SEPA_INSTANT !== 'yes' && own.some((route) => route.includes(INSTANT_RAIL))) {
    missing.push(`SEPA_INSTANT: ${SEPA_CONNECTOR} serves ${INSTANT_RAIL} only if it is yes.`);
  }
  if (own.length > 0) return missing;
  const example = `${SEPA_CONNECTOR}=sepa_credit_transfer`;
  return [
    ...missing,
    `SEPA_OUT_DIR: nothing is routed to the SEPA connector. Set SANDBOX_CONNECTORS=${example}, or ` +
      'LIVE_CONNECTORS.',
  ];
}

/**
 * Stores ports at the first start, so that restarts keep the addresses and two stacks never
 * collide.
 */
export async function decideConfig(
  environment: StackEnvironment,
  env: NodeJS.ProcessEnv,
  progress: Progress,
) {
  const dataDir = resolve(environment.DATA_DIR);
  const { PORT, SANDBOX_BANK_PORT = PORT + 1, TEMPORAL_UI_PORT } = environment;
  const named = [PORT, SANDBOX_BANK_PORT, TEMPORAL_UI_PORT].filter((each) => each !== undefined);
  reservePorts(named);
  const ports = await loadPorts(dataDir, named);
  reservePorts(Object.values(ports));
  const isUiPortFree = !named.includes(UI_PORT) && (await isPortFree(UI_PORT));
  const temporalUiPort = TEMPORAL_UI_PORT ?? (isUiPortFree ? UI_PORT : await freePort());
  if (TEMPORAL_UI_PORT === undefined && !isUiPortFree) {
    const line = `Port ${UI_PORT} is taken: the Temporal UI is on ${temporalUiPort} (TEMPORAL_UI_PORT)`;
    progress.line(line);
  }
  return {
    port: PORT,
    dataDir,
    cacheDir: resolve(cacheDirectory(env)),
    publicUrl: (environment.PUBLIC_URL ?? `http://localhost:${environment.PORT}`).replace(
      /\/+$/,
      '',
    ),
    /** External server; then none is started. */
    temporalAddress: environment.TEMPORAL_ADDRESS,
    temporalNamespace: environment.TEMPORAL_NAMESPACE,
    taskQueuePrefix: environment.TASK_QUEUE_PREFIX,
    temporalPort: ports.temporal,
    temporalUiPort,
    mongodbUri: environment.MONGODB_URI,
    mongodbPort: ports.mongodb,
    mongodbDb: environment.MONGODB_DB,
    mongodbLogin: environment.MONGODB_URI === undefined ? mongoLogin(dataDir) : undefined,
    sandboxBankPort: SANDBOX_BANK_PORT,
    metricsPorts: {
      api: ports.api_metrics,
      worker: ports.worker_metrics,
      sandbox_bank: ports.sandbox_bank_metrics,
      sepa: ports.sepa_metrics,
    },
    sandboxAutoplay: environment.SANDBOX_AUTOPLAY,
    sepa:
      environment.SEPA_OUT_DIR === ''
        ? undefined
        : {
            dir: resolve(environment.SEPA_IN_DIR),
            iban: environment.SEPA_IBAN,
            seconds: environment.SEPA_POLL_SECONDS,
          },
    liveConnectors: environment.LIVE_CONNECTORS,
    sandboxConnectors: environment.SANDBOX_CONNECTORS,
    logLevel: environment.LOG_LEVEL,
    live: isLive(environment),
  };
}

const port = z.int().min(1).max(65535);
const LISTENERS = [
  ...(['temporal', 'mongodb', 'api_metrics'] as const),
  ...(['worker_metrics', 'sandbox_bank_metrics', 'sepa_metrics'] as const),
] as const;
const StoredPorts = z.record(z.enum(LISTENERS), port);
type StoredPorts = z.infer<typeof StoredPorts>;

/** @param named ports on which something else will listen */
async function loadPorts(dataDir: string, named: readonly number[]): Promise<StoredPorts> {
  const path = join(dataDir, 'ports.json');
  const stored = readJson(path, StoredPorts);
  const isUsable =
    stored !== undefined &&
    !Object.values(stored).some((each) => named.includes(each)) &&
    (await areFree(stored));
  if (isUsable) return stored;
  const free = await Promise.all(LISTENERS.map(async (name) => [name, await freePort()]));
  const ports = StoredPorts.parse(Object.fromEntries(free));
  mkdirSync(dataDir, { recursive: true });
  replaceFile(path, `${JSON.stringify(ports)}\n`);
  return ports;
}

const RELEASED_WITHIN_MS = 3_000;
const LOOK_AGAIN_MS = 100;

/** Waits briefly for a server that just ended and may still hold its port. */
async function areFree(ports: StoredPorts): Promise<boolean> {
  const giveUpAt = Date.now() + RELEASED_WITHIN_MS;
  for (;;) {
    const free = await Promise.all(Object.values(ports).map((each) => isPortFree(each)));
    if (free.every((isFree) => isFree)) return true;
    if (Date.now() >= giveUpAt) return false;
    await sleep(LOOK_AGAIN_MS);
  }
}
