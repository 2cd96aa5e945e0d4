import type { Logger } from '../../src/base/log';

const POLL_MS = 300;
const TROUBLE_MS = 1_000;
/** Lease of a due row, after which another process retries it. */
export const LEASE_MS = 5_000;
const BACKOFF_MS_MAX = 30_000;

export function getBackoffMs(attempts: number): number {
  return Math.min(250 * 2 ** Math.min(attempts, 10), BACKOFF_MS_MAX);
}

export interface Loop {
  wake: () => void;
  stop: () => Promise<void>;
}

export interface LoopDeps {
  /** Does what is due. Returns whether more may be due at once. */
  round: () => Promise<boolean>;
  failureText: string;
  log: Logger;
}

export function startLoop({ round, failureText, log }: LoopDeps): Loop {
  let isStopped = false;
  let isWoken = false;
  let cutPause: () => void = () => undefined;
  const wake = () => {
    isWoken = true;
    cutPause();
  };
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      if (isWoken || isStopped) return resolve();
      const timer = setTimeout(resolve, ms);
      cutPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const run = async () => {
    while (!isStopped) {
      isWoken = false;
      let wait = POLL_MS;
      try {
        if (await round()) wait = 0;
      } catch (err) {
        log.error({ err }, failureText);
        wait = TROUBLE_MS;
      }
      if (wait > 0) await pause(wait);
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
