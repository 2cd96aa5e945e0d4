import { homedir } from 'node:os';
import { join } from 'node:path';

export { anvil } from './anvil';
export { provisionChromium } from './chromium';
export { mongod } from './mongod';
export { provision } from './provision';
export { temporalCli } from './temporal';
export { testServer } from './test-server';

/**
 * Folder that keeps servers between runs and checkouts: `CACHE_DIR`, else the user's cache folder.
 */
export function cacheDirectory(env: NodeJS.ProcessEnv): string {
  const named = env['CACHE_DIR'];
  if (named !== undefined && named !== '') return named;
  const home = env['XDG_CACHE_HOME'];
  const caches = home !== undefined && home !== '' ? home : join(homedir(), '.cache');
  return join(caches, 'durable-payments');
}
