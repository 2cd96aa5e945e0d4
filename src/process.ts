import type { Logger } from './log';

/**
 * Ends the process on SIGTERM, on SIGINT, or when the launcher that started it is gone: at once while
 * it starts, since it has begun nothing, and from then on as it says. To be called before anything is
 * waited for, or a process whose launcher dies meanwhile would stay for ever.
 * @returns function that takes how to stop, which runs once
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
  // The event of a launcher that was gone before went to nobody.
  if (process.connected === false) begin('disconnect');
  return (how: () => Promise<void>): void => {
    stop = how;
  };
}
