import { startLoop as startKitLoop } from '../../kit/loop';

const POLL_MS = 300;
const TROUBLE_MS = 1_000;
/** After it another process retries the row. */
export const LEASE_MS = 5_000;
const BACKOFF_MS_MAX = 30_000;

export function getBackoffMs(attempts: number): number {
  return Math.min(250 * 2 ** Math.min(attempts, 10), BACKOFF_MS_MAX);
}

type Loop = Pick<Parameters<typeof startKitLoop>[0], 'round' | 'failureText' | 'log'>;

/** Stays quick after a failure. */
export function startLoop(loop: Loop) {
  return startKitLoop({ ...loop, pollMs: POLL_MS, troubleMsMax: TROUBLE_MS });
}
