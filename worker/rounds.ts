import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Goes on after a failed round.
 * @returns function that ends it, and waits for the round in progress
 */
export function startRounds(
  pauseMs: number,
  round: (signal: AbortSignal) => Promise<void>,
  onError: (err: unknown) => void,
): () => Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const run = async () => {
    while (!signal.aborted) {
      await round(signal).catch(onError);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = run();
  return async () => {
    stop.abort();
    await running;
  };
}
