import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { StackConfig } from '../../stack/config';
import { freePort } from '../../stack/ports';
import { cacheDirectory } from '../../stack/provision';
import type { Progress } from '../../stack/terminal';

/** Surroundings of a run. */
export interface Setting {
  /** Temporary folder for everything that the run writes. */
  dir: string;
  env: NodeJS.ProcessEnv;
  progress: Progress;
  signal: AbortSignal;
  /** Rejects when the run cannot go on. */
  broken: Promise<never>;
}

/** Builds the settings of a separate stack: free ports, a new folder, no autoplay. */
export async function buildConfig({ dir, env }: Setting): Promise<StackConfig> {
  const port = await freePort();
  const read = (name: string): string | undefined => env[name] || undefined;
  return {
    port,
    dataDir: join(dir, 'data'),
    cacheDir: resolve(cacheDirectory(env)),
    publicUrl: `http://localhost:${port}`,
    temporalAddress: read('TEMPORAL_ADDRESS'),
    temporalNamespace: read('TEMPORAL_NAMESPACE') ?? 'default',
    taskQueuePrefix: '',
    temporalPort: await freePort(),
    temporalUiPort: await freePort(),
    mongodbUri: read('MONGODB_URI'),
    mongodbPort: await freePort(),
    // A server in use may hold other stacks, so the databases are this run's own.
    mongodbDb: `bench_${randomBytes(4).toString('hex')}`,
    sandboxBankPort: await freePort(),
    metricsPorts: {
      api: await freePort(),
      worker: await freePort(),
      sandbox_bank: await freePort(),
    },
    sandboxAutoplay: 'off',
    liveConnectors: '',
    logLevel: 'warn',
    live: false,
  };
}
