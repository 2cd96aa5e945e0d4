import { setTimeout as wait } from 'node:timers/promises';
import { CACHE_MS } from '../../store/cache';

/** After it, no process goes by what was stored before. */
export async function waitForCaches(): Promise<void> {
  await wait(CACHE_MS);
}
