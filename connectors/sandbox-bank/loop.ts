import type { Logger } from '../../src/log';

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
  trouble: string;
  log: Logger;
}

/** Runs rounds until it is stopped, with a rest where nothing more is due. */
export function startLoop({ round, trouble, log }: LoopDeps): Loop {
  let stopped = false;
  let woken = false;
  let ring: () => void = () => undefined;
  const wake = () => {
    woken = true;
    ring();
  };
  const rest = (ms: number) =>
    new Promise<void>((resolve) => {
      if (woken || stopped) return resolve();
      const timer = setTimeout(resolve, ms);
      ring = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const run = async () => {
    while (!stopped) {
      woken = false;
      let wait = POLL_MS;
      try {
        if (await round()) wait = 0;
      } catch (err) {
        log.error({ err }, trouble);
        wait = TROUBLE_MS;
      }
      if (wait > 0) await rest(wait);
    }
  };
  const running = run();
  return {
    wake,
    stop: async () => {
      stopped = true;
      wake();
      await running;
    },
  };
}
