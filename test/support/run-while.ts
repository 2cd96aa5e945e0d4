import type { Worker } from '@temporalio/worker';
import { runWorker } from '../../src/temporal/native';

/**
 * Runs a worker while `work` is done. The SDK's `runUntil` may refuse to release one that has
 * stopped.
 * @throws Error when the worker failed or stopped before
 */
export async function runWhile<T>(worker: Worker, work: () => Promise<T>): Promise<T> {
  const running = runWorker(worker);
  const stopped = running.then(() => {
    throw new Error('The worker stopped before the work was done.');
  });
  try {
    return await Promise.race([work(), stopped]);
  } finally {
    if (worker.getState() === 'RUNNING') worker.shutdown();
    await running;
  }
}
