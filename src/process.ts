import type { Logger } from './log';

/**
 * Runs `stop` once, on SIGTERM, on SIGINT, or when the launcher that started this process is gone.
 */
export function onStop(log: Logger, stop: () => Promise<void>): void {
  let stopping = false;
  const begin = (why: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ code: why }, 'stopping');
    stop().catch((err) => {
      log.error({ err }, 'stopped with an error');
      process.exit(1);
    });
  };
  process.on('SIGTERM', () => begin('SIGTERM'));
  process.on('SIGINT', () => begin('SIGINT'));
  process.on('disconnect', () => begin('disconnect'));
}
