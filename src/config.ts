import { z } from 'zod';
import { describeError } from './base/errors';
import { liveFaults } from './base/live';
import { checkMongoTls, checkTemporalTls, PLAIN_TEXT_ALLOWED } from './base/tls';
import { type TemporalAccess, temporalAccess } from './temporal/access';
import { LIBRARY_VARIABLES, VARIABLES } from './variables';

export const Environment = z.object({ ...VARIABLES.shape, ...LIBRARY_VARIABLES.shape });

export type Config = Omit<z.infer<typeof Environment>, 'PUBLIC_URL'> & {
  PUBLIC_URL: string;
  temporal: TemporalAccess;
};

/** @throws Error that lists every invalid variable */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const config = parseEnvironment(Environment, env);
  const url = config.PUBLIC_URL ?? `http://localhost:${config.PORT}`;
  const PUBLIC_URL = url.replace(/\/+$/, '');
  const faults = liveFaults({ ...config, PUBLIC_URL });
  if (faults.length > 0) throw unusableError(faults);
  return { ...config, PUBLIC_URL, temporal: readServers(env, config) };
}

/** @throws Error that lists invalid variables, and connections over a network without TLS */
export function readServers(
  env: NodeJS.ProcessEnv,
  { MONGODB_URI, ALLOW_CLEAR_TEXT }: { MONGODB_URI: string; ALLOW_CLEAR_TEXT: string },
): TemporalAccess {
  let temporal: TemporalAccess;
  try {
    temporal = temporalAccess(env);
  } catch (error) {
    throw unusableError([describeError(error)]);
  }
  if (ALLOW_CLEAR_TEXT === PLAIN_TEXT_ALLOWED) return temporal;
  const checks = [checkTemporalTls(temporal), checkMongoTls(MONGODB_URI)];
  const faults = checks.filter((fault) => fault !== undefined);
  if (faults.length === 0) return temporal;
  throw unusableError(faults);
}

/** Ignores empty variables. @throws Error that lists every invalid one */
export function parseEnvironment<T extends z.ZodType>(
  schema: T,
  env: NodeJS.ProcessEnv,
): z.output<T> {
  const present = Object.entries(env).filter(([, value]) => value !== '');
  const parsed = schema.safeParse(Object.fromEntries(present));
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw unusableError(faults);
}

function unusableError(faults: readonly string[]): Error {
  return new Error(`The environment is not usable.\n  ${faults.join('\n  ')}`);
}
