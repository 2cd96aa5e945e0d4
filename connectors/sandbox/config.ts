import type { z } from 'zod';
import { Environment, parseEnvironment, readServers } from '../../src/config';
import type { TemporalAccess } from '../../src/temporal/access';

/** The bank decrypts recipients with its key pairs alone. */
const SandboxEnvironment = Environment.omit({ KEYS_FILE: true });

export type SandboxBankConfig = z.infer<typeof SandboxEnvironment> & { temporal: TemporalAccess };

/** @throws Error naming every variable at fault */
export function readSandboxBankConfig(env: NodeJS.ProcessEnv = process.env): SandboxBankConfig {
  const config = parseEnvironment(SandboxEnvironment, env);
  return { ...config, temporal: readServers(env, config) };
}
