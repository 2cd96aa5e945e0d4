import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../src/base/log';

const POLL_MS = 300;
const TROUBLE_MS = 1_000;
/** Lease of a due row, after which another process retries it. */
export const LEASE_MS = 5_000;
const BACKOFF_MS_MAX = 30_000;

export function getBackoffMs(attempts: number): number {
  return Math.min(250 * 2 ** Math.min(attempts, 10), BACKOFF_MS_MAX);
}

interface LoopDeps {
  /** Does what is due. Returns whether more may be due at once. */
  round: () => Promise<boolean>;
  failureText: string;
  log: Logger;
}

export function startLoop({ round, failureText, log }: LoopDeps) {
  let isStopped = false;
  let pause = new AbortController();
  const wake = () => pause.abort();
  const run = async () => {
    while (!isStopped) {
      // New before the round, so that a wake during the round counts.
      pause = new AbortController();
      let wait = POLL_MS;
      try {
        if (await round()) wait = 0;
      } catch (err) {
        log.error({ err }, failureText);
        wait = TROUBLE_MS;
      }
      if (wait > 0) await sleep(wait, undefined, { signal: pause.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    wake,
    stop: async () => {
      isStopped = true;
      wake();
      await running;
    },
  };
}
