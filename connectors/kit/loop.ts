import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../src/base/log';

const TROUBLE_MS = 1_000;
const TROUBLE_MS_MAX = 60_000;

interface LoopDeps {
  /** @returns whether more may be due at once */
  round: () => Promise<boolean>;
  /** Wait after a round with nothing left to do. */
  pollMs: number;
  /** Longest wait after failures; a minute by default. */
  troubleMsMax?: number;
  /** Ms for which `stop` waits for a round of an author's code; by default until it ends. */
  graceMs?: number;
  failureText: string;
  log: Pick<Logger, 'error'>;
}

/** Repeats a round; after failures it waits longer each time. */
export function startLoop({
  round,
  pollMs,
  failureText,
  log,
  troubleMsMax = TROUBLE_MS_MAX,
  graceMs,
}: LoopDeps) {
  let isStopped = false;
  let failures = 0;
  let pause = new AbortController();
  const wake = () => pause.abort();
  const run = async () => {
    while (!isStopped) {
      // New before the round, so that a wake during the round counts.
      pause = new AbortController();
      let wait = pollMs;
      try {
        if (await round()) wait = 0;
        failures = 0;
      } catch (err) {
        log.error({ err }, failureText);
        wait = Math.min(TROUBLE_MS * 2 ** Math.min(failures, 10), troubleMsMax);
        failures += 1;
      }
      if (wait > 0) await sleep(wait, undefined, { signal: pause.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    wake,
    /** A round that outlasts the grace ends with the process, and is repeated by the next one. */
    stop: async () => {
      isStopped = true;
      wake();
      if (graceMs === undefined) return await running;
      const over = new AbortController();
      const grace = sleep(graceMs, undefined, { signal: over.signal }).catch(() => undefined);
      await Promise.race([running, grace]);
      over.abort();
    },
  };
}
