import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { TASK_QUEUE_PREFIX } from '../src/domain/task-queues';
import { isLive, LIVE_DEMO_ALLOWED } from '../src/live';
import { StackFailure } from '../src/os/failure';
import { type MongoLogin, mongoLogin } from './mongo-login';
import { freePort, isPortFree } from './ports';
import { cacheDirectory } from './provision';
import { writeWhole } from './state-file';
import type { Progress } from './terminal';

const port = z.coerce.number().int().min(1).max(65535);
const UI_PORT = 8233;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const Environment = z.object({
  PORT: port.default(8080),
  DATA_DIR: z.string().default('.data'),
  PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
  TEMPORAL_ADDRESS: z.string().optional(),
  TEMPORAL_NAMESPACE: z.string().default('default'),
  TASK_QUEUE_PREFIX: z.string().regex(TASK_QUEUE_PREFIX).default(''),
  TEMPORAL_PORT: port.optional(),
  TEMPORAL_UI_PORT: port.optional(),
  MONGODB_URI: z
    .string()
    .regex(/^mongodb(\+srv)?:\/\//, 'starts with mongodb:// or mongodb+srv://')
    .optional(),
  MONGODB_PORT: port.optional(),
  MONGODB_DB: z.string().default('payments'),
  LIVE_CONNECTORS: z.string().default(''),
  ALLOW_LIVE_DEMO: z.enum(['', LIVE_DEMO_ALLOWED]).default(''),
  SANDBOX_BANK_PORT: port.optional(),
  SANDBOX_AUTOPLAY: z.enum(['on', 'off']).default('on'),
  LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
});

/** Settings of the launcher, all of them decided; folders are absolute. */
export interface StackConfig {
  port: number;
  dataDir: string;
  cacheDir: string;
  publicUrl: string;
  /** Address of a server that is given, so that no Temporal server is started. */
  temporalAddress?: string;
  temporalNamespace: string;
  /** Tells the task queues from those of others in the namespace. */
  taskQueuePrefix: string;
  temporalPort: number;
  temporalUiPort: number;
  /** Address of a server that is given, so that no MongoDB is started. */
  mongodbUri?: string;
  mongodbPort: number;
  mongodbDb: string;
  /** Users of the MongoDB that is started; without them it lets in everybody on this machine. */
  mongodbLogin?: MongoLogin;
  sandboxBankPort: number;
  /** Ports on which the service's own processes tell their figures. */
  metricsPorts: { api: number; worker: number; sandbox_bank: number };
  sandboxAutoplay: 'on' | 'off';
  /** Live banks, as the API reads them. */
  liveConnectors: string;
  logLevel: (typeof LOG_LEVELS)[number];
  /** Whether real money moves here. */
  live: boolean;
}

type Given = z.infer<typeof Environment>;

/**
 * Reads the environment; an empty variable counts as not set.
 * @throws StackFailure naming every variable at fault.
 */
export function readEnvironment(env: NodeJS.ProcessEnv): Given {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = Environment.safeParse(set);
  const faults = parsed.success
    ? demoFaults(parsed.data)
    : parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  if (parsed.success && faults.length === 0) return parsed.data;
  throw new StackFailure(`The environment is not usable.\n  ${faults.join('\n  ')}`);
}

/** Says what `npm start` would have live money stand on that is made for trying things out. */
function demoFaults(given: Given): string[] {
  if (!isLive(given)) return [];
  const needed = [
    ...(given.TEMPORAL_ADDRESS === undefined ? ['TEMPORAL_ADDRESS'] : []),
    ...(given.MONGODB_URI === undefined ? ['MONGODB_URI'] : []),
    ...(given.PUBLIC_URL?.startsWith('https://') ? [] : ['an https PUBLIC_URL']),
  ];
  if (needed.length === 0) return [];
  return [
    `LIVE_CONNECTORS: real money needs servers of your own. Set ${needed.join(', ')}; or set ` +
      `ALLOW_LIVE_DEMO=${LIVE_DEMO_ALLOWED} to try a bank out with what npm start runs.`,
  ];
}

/**
 * Decides every setting. The servers' own ports are chosen at the first start and kept in the data
 * folder, so that restarts keep the addresses and two stacks never meet.
 */
export async function decideConfig(
  given: Given,
  env: NodeJS.ProcessEnv,
  progress: Progress,
): Promise<StackConfig> {
  const dataDir = resolve(given.DATA_DIR);
  const ports = await keptPorts(dataDir);
  return {
    port: given.PORT,
    dataDir,
    cacheDir: resolve(cacheDirectory(env)),
    publicUrl: (given.PUBLIC_URL ?? `http://localhost:${given.PORT}`).replace(/\/+$/, ''),
    temporalAddress: given.TEMPORAL_ADDRESS,
    temporalNamespace: given.TEMPORAL_NAMESPACE,
    taskQueuePrefix: given.TASK_QUEUE_PREFIX,
    temporalPort: given.TEMPORAL_PORT ?? ports.temporal,
    temporalUiPort: given.TEMPORAL_UI_PORT ?? (await defaultUiPort(progress)),
    mongodbUri: given.MONGODB_URI,
    mongodbPort: given.MONGODB_PORT ?? ports.mongodb,
    mongodbDb: given.MONGODB_DB,
    mongodbLogin: given.MONGODB_URI === undefined ? mongoLogin(dataDir) : undefined,
    sandboxBankPort: given.SANDBOX_BANK_PORT ?? given.PORT + 1,
    metricsPorts: {
      api: ports.api_metrics,
      worker: ports.worker_metrics,
      sandbox_bank: ports.sandbox_bank_metrics,
    },
    sandboxAutoplay: given.SANDBOX_AUTOPLAY,
    liveConnectors: given.LIVE_CONNECTORS,
    logLevel: given.LOG_LEVEL,
    live: isLive(given),
  };
}

/**
 * Chooses the port of the UI; a second stack takes another one, as only a person's browser needs
 * the usual port.
 */
async function defaultUiPort(progress: Progress): Promise<number> {
  if (await isPortFree(UI_PORT)) return UI_PORT;
  const other = await freePort();
  progress.line(`Port ${UI_PORT} is taken: the Temporal UI is on ${other} (TEMPORAL_UI_PORT)`);
  return other;
}

const KeptPorts = z.object({
  temporal: port,
  mongodb: port,
  api_metrics: port,
  worker_metrics: port,
  sandbox_bank_metrics: port,
});
type KeptPorts = z.infer<typeof KeptPorts>;

async function keptPorts(dataDir: string): Promise<KeptPorts> {
  const path = join(dataDir, 'ports.json');
  if (existsSync(path)) {
    // A file of an earlier version has some of them.
    const kept = KeptPorts.partial().safeParse(JSON.parse(readFileSync(path, 'utf8'))).data ?? {};
    const whole = { ...(await choosePorts()), ...kept };
    if (await areFree(whole)) return writePorts(path, whole);
  }
  const chosen = await choosePorts();
  mkdirSync(dataDir, { recursive: true });
  return writePorts(path, chosen);
}

async function choosePorts(): Promise<KeptPorts> {
  return {
    temporal: await freePort(),
    mongodb: await freePort(),
    api_metrics: await freePort(),
    worker_metrics: await freePort(),
    sandbox_bank_metrics: await freePort(),
  };
}

function writePorts(path: string, ports: KeptPorts): KeptPorts {
  writeWhole(path, `${JSON.stringify(ports)}\n`);
  return ports;
}

const RELEASED_WITHIN_MS = 3_000;
const LOOK_AGAIN_MS = 100;

/** Waits a little for a server that was just ended, and may hold its port a moment longer. */
async function areFree(ports: KeptPorts): Promise<boolean> {
  const giveUpAt = Date.now() + RELEASED_WITHIN_MS;
  for (;;) {
    const free = await Promise.all(Object.values(ports).map((each) => isPortFree(each)));
    if (free.every((isFree) => isFree)) return true;
    if (Date.now() >= giveUpAt) return false;
    await sleep(LOOK_AGAIN_MS);
  }
}
