import type { z } from 'zod';
import { Environment, parseEnvironment, readServers } from '../../src/config';
import type { TemporalAccess } from '../../src/temporal/access';
import { findStateDir } from '../kit/config';

/** The bank decrypts recipients with its key pairs alone. */
const SandboxEnvironment = Environment.omit({ KEYS_FILE: true });

export type SandboxBankConfig = z.infer<typeof SandboxEnvironment> & { temporal: TemporalAccess };

/** @throws Error naming every variable at fault */
export function readSandboxBankConfig(env: NodeJS.ProcessEnv = process.env): SandboxBankConfig {
  const config = parseEnvironment(SandboxEnvironment, env);
  const CONNECTOR_STATE_DIR = findStateDir(config);
  return { ...config, CONNECTOR_STATE_DIR, temporal: readServers(env, config) };
}
