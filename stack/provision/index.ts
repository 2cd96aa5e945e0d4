import { homedir } from 'node:os';
import { join } from 'node:path';

export { mongod } from './mongod';
export { provision } from './provision';
export { temporalCli } from './temporal';

export function cacheDirectory(env: NodeJS.ProcessEnv): string {
  const caches = env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(caches, 'durable-payments');
}
