import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { StackConfig } from '../../stack/config';
import type { Executables } from '../../stack/parts';
import { freePort } from '../../stack/ports';
import { cacheDirectory, mongod, provision, temporalCli } from '../../stack/provision';
import { checkRemoteMongo, prepareRemoteTemporal, remoteAccess } from '../../stack/remote-servers';
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

/** Finds or downloads the servers as `npm start` does. */
export async function findServers(
  { temporalAddress, mongodbUri, cacheDir }: StackConfig,
  { env, progress, signal }: Setting,
): Promise<Executables> {
  const context = { cacheDir, env, progress, signal };
  const temporal =
    temporalAddress === undefined
      ? await provision(temporalCli, context)
      : await prepareRemoteTemporal(remoteAccess(env), progress);
  const mongo =
    mongodbUri === undefined
      ? await provision(mongod, context)
      : await checkRemoteMongo(mongodbUri);
  return { temporal: temporal?.path, mongod: mongo?.path };
}
