import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { CLEAR_TEXT_ALLOWED, mongoInClear, temporalInClear } from './clear-text';
import { isTrustedProxies } from './client-address';
import { readWindows } from './domain/crypto';
import { TASK_QUEUE_PREFIX } from './domain/task-queues';
import { LIVE_DEMO_ALLOWED, liveFaults } from './live';
import { METRICS_VARIABLES } from './metrics/page';
import { areCidrs } from './networks';
import { TEMPORAL_VARIABLES, type TemporalAccess, temporalAccess } from './temporal/access';
import { TRACING_VARIABLES } from './tracing/tracing';

/** Names the entry at fault with the other faults of the environment. */
function checkWindows(text: string, ctx: z.RefinementCtx): void {
  try {
    readWindows(text);
  } catch (error) {
    ctx.addIssue({
      code: 'custom',
      message: error instanceof Error ? error.message : 'unreadable',
    });
  }
}

const perSecond = z.coerce.number().int().positive();

/** Variables of every process: how it reaches the servers, and where it tells its figures. */
export const SERVER_VARIABLES = {
  MONGODB_URI: z.string().min(1),
  MONGODB_DB: z.string().default('payments'),
  ...TEMPORAL_VARIABLES,
  TASK_QUEUE_PREFIX: z.string().regex(TASK_QUEUE_PREFIX).default(''),
  ALLOW_CLEAR_TEXT: z.enum(['', CLEAR_TEXT_ALLOWED]).default(''),
  ...METRICS_VARIABLES,
};

/** Environment of the process, parsed once at start; a wrong value ends the process in words. */
export const Environment = z.object({
  ...SERVER_VARIABLES,
  PORT: z.coerce.number().int().min(1).max(65535).default(8080),
  HOST: z.string().default('127.0.0.1'),
  PUBLIC_URL: z.url().optional(),
  DRAIN_MS: z.coerce.number().int().min(0).max(120_000).default(0),
  CREATES_AT_ONCE: z.coerce.number().int().positive().default(100),
  KEYS_FILE: z.string().min(1),
  KEYS_DIR: z.string().default(''),
  KEYS_COMMAND: z.string().default(''),
  WEBHOOK_ALLOW_PRIVATE: z.enum(['', 'sandbox']).default(''),
  WEBHOOK_DENY_CIDRS: z
    .string()
    .refine((text) => text === '' || areCidrs(text), {
      message: 'must be CIDRs separated by commas',
    })
    .default(''),
  LIVE_CONNECTORS: z.string().default(''),
  ALLOW_LIVE_DEMO: z.enum(['', LIVE_DEMO_ALLOWED]).default(''),
  CRYPTO_WINDOWS: z.string().default('').superRefine(checkWindows),
  RATE_LIMIT_PER_SECOND: perSecond.default(500),
  ACCOUNT_LIMIT_PER_SECOND: perSecond.default(1_000),
  CREATE_LIMIT_PER_SECOND: perSecond.default(200),
  SANDBOX_CREATE_LIMIT_PER_SECOND: perSecond.default(200),
  ...TRACING_VARIABLES,
  TRUSTED_PROXIES: z
    .string()
    .refine((text) => text === '' || isTrustedProxies(text), {
      message: 'must be a number of proxies, or CIDRs separated by commas',
    })
    .default(''),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
});

const KEY_BYTES = 32;

const key32 = z
  .base64url()
  .transform((text) => Buffer.from(text, 'base64url'))
  .refine((key) => key.length === KEY_BYTES, `must be ${KEY_BYTES} bytes in base64url`)
  .refine((key) => new Set(key).size > 1, 'must be random, not one byte again and again');

/** Name of a key that stands in the key file by itself, as before its first rotation. */
export const FIRST_KEY = 'first';

/** Keys by their names: the current one is used for what is new, all of them for what there is. */
const Ring = z.object({ current: z.string(), keys: z.record(z.string(), key32) });

/** Ring that may stand as the text of its only key. */
const RingOrKey = z.preprocess(
  (value) =>
    typeof value === 'string' ? { current: FIRST_KEY, keys: { [FIRST_KEY]: value } } : value,
  Ring,
);

/** Secrets of the service, kept in `KEYS_FILE` (mode 0600) and never in the database. */
const Keys = z.object({ pay_token: RingOrKey, fingerprint: RingOrKey, seal: Ring });

export type Keys = z.infer<typeof Keys>;
export type Config = Omit<z.infer<typeof Environment>, 'PUBLIC_URL'> & {
  PUBLIC_URL: string;
  temporal: TemporalAccess;
};

/** @throws Error naming every variable at fault. */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const config = parseEnvironment(Environment, env);
  const url = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`;
  const PUBLIC_URL = url.replace(/\/+$/, '');
  const faults = liveFaults({ ...config, PUBLIC_URL });
  if (faults.length > 0) throw unusable(faults);
  return { ...config, PUBLIC_URL, temporal: serversIn(env, config) };
}

/**
 * Reads how Temporal is reached, and checks that neither server is spoken to in clear over a network.
 * @throws Error naming every variable at fault.
 */
export function serversIn(
  env: NodeJS.ProcessEnv,
  { MONGODB_URI, ALLOW_CLEAR_TEXT }: { MONGODB_URI: string; ALLOW_CLEAR_TEXT: string },
): TemporalAccess {
  const temporal = accessIn(env);
  if (ALLOW_CLEAR_TEXT === CLEAR_TEXT_ALLOWED) return temporal;
  const faults = [temporalInClear(temporal), mongoInClear(MONGODB_URI)];
  const told = faults.filter((fault) => fault !== undefined);
  if (told.length === 0) return temporal;
  throw unusable(told);
}

function accessIn(env: NodeJS.ProcessEnv): TemporalAccess {
  try {
    return temporalAccess(env);
  } catch (error) {
    throw unusable([error instanceof Error ? error.message : String(error)]);
  }
}

/** @throws Error naming every variable at fault. */
export function parseEnvironment<T extends z.ZodType>(
  schema: T,
  env: NodeJS.ProcessEnv,
): z.output<T> {
  const parsed = schema.safeParse(env);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw unusable(faults);
}

function unusable(faults: readonly string[]): Error {
  return new Error(`The environment is not usable.\n  ${faults.join('\n  ')}`);
}

/**
 * @throws Error when the file is missing or is no key file; it holds nothing of the file's content
 */
export function readKeys(path: string): Keys {
  return parseKeys(readFileSync(path, 'utf8'));
}

/** @throws Error when the text is no key file's; it holds nothing of it */
export function parseKeys(text: string): Keys {
  return Keys.parse(parsedOrNone(text));
}

/** Parses JSON without the parser's own error, which would quote the text at fault. */
function parsedOrNone(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
