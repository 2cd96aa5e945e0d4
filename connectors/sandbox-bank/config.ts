import { z } from 'zod';
import { parseEnvironment, SERVER_VARIABLES, serversIn } from '../../src/config';
import type { TemporalAccess } from '../../src/temporal/access';

/** Environment of the sandbox bank's process. */
export const Environment = z.object({
  SANDBOX_BANK_PORT: z.coerce.number().int().min(0).max(65535).default(8081),
  HOST: z.string().default('127.0.0.1'),
  /** Public base of its pages. */
  SANDBOX_BANK_URL: z.url().optional(),
  /** Whether settlements and completions follow by themselves. */
  SANDBOX_AUTOPLAY: z.enum(['on', 'off']).default('on'),
  /** Those of the service, whose queues this bank works on. */
  ...SERVER_VARIABLES,
  /** The service's key file, unless recipients have a ring of their own: they come sealed. */
  KEYS_FILE: z.string().min(1).optional(),
  /** Folder of that ring. */
  KEYS_DIR: z.string().default(''),
  /** Program that stands for these files. */
  KEYS_COMMAND: z.string().default(''),
  /** Key that its callbacks are signed with; without one they are not. */
  CONNECTOR_KEY_FILE: z.string().default(''),
  LOG_LEVEL: z.string().default('info'),
});

export type SandboxBankConfig = z.infer<typeof Environment> & { temporal: TemporalAccess };

/** @throws Error naming every variable at fault. */
export function readSandboxBankConfig(env: NodeJS.ProcessEnv = process.env): SandboxBankConfig {
  const config = parseEnvironment(
    Environment.refine(({ KEYS_FILE, KEYS_DIR }) => KEYS_FILE !== undefined || KEYS_DIR !== '', {
      path: ['KEYS_FILE'],
      message: 'must be set, or KEYS_DIR',
    }),
    env,
  );
  return { ...config, temporal: serversIn(env, config) };
}
