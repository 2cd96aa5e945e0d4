import type { Logger } from '../../src/base/log';

const POLL_MS = 300;
const TROUBLE_MS = 1_000;

export interface Loop {
  /** Tells that something may be due now. */
  wake: () => void;
  /** Resolves when the round that runs is done. */
  stop: () => Promise<void>;
}

export interface LoopDeps {
  /** Does what is due; answers whether more may be due at once. */
  round: () => Promise<boolean>;
  /** Line of the log when a round fails. */
  failureText: string;
  log: Logger;
}

/** Runs rounds until it is stopped, with a rest where nothing more is due. */
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
