import { join } from 'node:path';
import { startMongo } from '../stack/mongo-server';
import { freePort } from '../stack/ports';
import { cacheDirectory, mongod, provision } from '../stack/provision';
import { checkRemoteMongo } from '../stack/remote-servers';
import type { Setting } from './servers';

/** Starts a MongoDB alone, or takes the one that is given. */
export async function mongoFor({ dir, env, progress, signal }: Setting) {
  const given = env['MONGODB_URI'];
  if (given !== undefined && given !== '') {
    await checkRemoteMongo(given);
    return { uri: given, stop: async () => {} };
  }
  const cacheDir = cacheDirectory(env);
  const { path } = await provision(mongod, { cacheDir, env, progress, signal });
  const options = { executable: path, dbPath: join(dir, 'mongodb'), port: await freePort() };
  return await startMongo({ ...options, logFile: join(dir, 'mongodb.log'), signal });
}

export async function timed<T>(work: () => Promise<T>): Promise<{ result: T; seconds: number }> {
  const began = performance.now();
  const result = await work();
  return { result, seconds: (performance.now() - began) / 1_000 };
}
