import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { TASK_QUEUE_PREFIX } from '../src/domain/task-queues';
import { StackFailure } from '../src/os/failure';
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
  sandboxBankPort: number;
  sandboxAutoplay: 'on' | 'off';
  logLevel: (typeof LOG_LEVELS)[number];
}

type Given = z.infer<typeof Environment>;

/**
 * Reads the environment; an empty variable counts as not set.
 * @throws StackFailure naming every variable at fault.
 */
export function readEnvironment(env: NodeJS.ProcessEnv): Given {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = Environment.safeParse(set);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
  throw new StackFailure(`The environment is not usable.\n${faults.join('\n')}`);
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
    sandboxBankPort: given.SANDBOX_BANK_PORT ?? given.PORT + 1,
    sandboxAutoplay: given.SANDBOX_AUTOPLAY,
    logLevel: given.LOG_LEVEL,
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

const KeptPorts = z.object({ temporal: port, mongodb: port });

async function keptPorts(dataDir: string): Promise<z.infer<typeof KeptPorts>> {
  const path = join(dataDir, 'ports.json');
  if (existsSync(path)) {
    const kept = KeptPorts.safeParse(JSON.parse(readFileSync(path, 'utf8')));
    if (kept.success && (await areFree(kept.data))) return kept.data;
  }
  const chosen = { temporal: await freePort(), mongodb: await freePort() };
  mkdirSync(dataDir, { recursive: true });
  writeWhole(path, `${JSON.stringify(chosen)}\n`);
  return chosen;
}

const RELEASED_WITHIN_MS = 3_000;
const LOOK_AGAIN_MS = 100;

/** Waits a little for a server that was just ended, and may hold its port a moment longer. */
async function areFree({ temporal, mongodb }: z.infer<typeof KeptPorts>): Promise<boolean> {
  const giveUpAt = Date.now() + RELEASED_WITHIN_MS;
  for (;;) {
    if ((await isPortFree(temporal)) && (await isPortFree(mongodb))) return true;
    if (Date.now() >= giveUpAt) return false;
    await sleep(LOOK_AGAIN_MS);
  }
}
