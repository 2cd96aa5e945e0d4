import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { decideConfig, readEnvironment, type StackConfig } from '../../stack/config';
import { freePort } from '../../stack/ports';
import type { Progress } from '../../stack/terminal';

export interface Setting {
  dir: string;
  env: NodeJS.ProcessEnv;
  progress: Progress;
  signal: AbortSignal;
  /** Rejects when the run cannot go on. */
  broken: Promise<never>;
}

export async function buildConfig({ dir, env, progress }: Setting): Promise<StackConfig> {
  const environment = readEnvironment({
    ...env,
    PORT: String(await freePort()),
    SANDBOX_BANK_PORT: String(await freePort()),
    TEMPORAL_UI_PORT: String(await freePort()),
    DATA_DIR: join(dir, 'data'),
    // A server in use may hold other stacks, so the databases are this run's own.
    MONGODB_DB: `bench_${randomBytes(4).toString('hex')}`,
    PUBLIC_URL: '',
    TASK_QUEUE_PREFIX: '',
    LIVE_CONNECTORS: '',
    SANDBOX_CONNECTORS: '',
    SANDBOX_AUTOPLAY: 'off',
    LOG_LEVEL: 'warn',
  });
  // Without users, as in earlier results.
  return { ...(await decideConfig(environment, env, progress)), mongodbLogin: undefined };
}
