import type { Logger } from './log';

/**
 * Ends the process on SIGTERM, SIGINT, or the end of its launcher. Call it before the first
 * `await`, or the end of the launcher may be missed.
 * @returns function that sets the stop function, which runs once
 */
export function listenForStop(log: Pick<Logger, 'info' | 'error'>) {
  let stop: (() => Promise<void>) | undefined;
  let stopping = false;
  const begin = (why: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ code: why }, 'stopping');
    if (stop === undefined) process.exit(0);
    stop().catch((err) => {
      log.error({ err }, 'stopped with an error');
      process.exit(1);
    });
  };
  process.on('SIGTERM', () => begin('SIGTERM'));
  process.on('SIGINT', () => begin('SIGINT'));
  process.on('disconnect', () => begin('disconnect'));
  if (process.connected === false) begin('disconnect');
  return (how: () => Promise<void>): void => {
    stop = how;
  };
}

/** Exits when `main` ends: an open channel to the launcher would keep the process alive. */
export function exitAfter(main: Promise<unknown>): void {
  main.then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error instanceof Error ? (error.stack ?? error.message) : error);
      process.exit(1);
    },
  );
}
