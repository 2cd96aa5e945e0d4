import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { StackConfig } from '../stack/config';
import type { Executables } from '../stack/parts';
import { freePort } from '../stack/ports';
import { cacheDirectory, mongod, provision, temporalCli } from '../stack/provision';
import { checkRemoteMongo, prepareRemoteTemporal, remoteAccess } from '../stack/remote-servers';
import type { Progress } from '../stack/terminal';

export interface Setting {
  /** Temporary folder for all that is written. */
  dir: string;
  env: NodeJS.ProcessEnv;
  progress: Progress;
  signal: AbortSignal;
}

/**
 * Decides the settings as `npm start` does, for a stack of its own: free ports, a new folder, no
 * autoplay.
 */
export async function benchConfig({ dir, env }: Setting): Promise<StackConfig> {
  const port = await freePort();
  const given = (name: string): string | undefined => env[name] || undefined;
  return {
    port,
    dataDir: join(dir, 'data'),
    cacheDir: resolve(cacheDirectory(env)),
    publicUrl: `http://localhost:${port}`,
    temporalAddress: given('TEMPORAL_ADDRESS'),
    temporalNamespace: given('TEMPORAL_NAMESPACE') ?? 'default',
    taskQueuePrefix: '',
    temporalPort: await freePort(),
    temporalUiPort: await freePort(),
    mongodbUri: given('MONGODB_URI'),
    mongodbPort: await freePort(),
    // The databases are this run's own, since a server that was given may hold other stacks.
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

/** Finds or fetches the servers that `npm start` would take, by its own code. */
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
