import { setTimeout as wait } from 'node:timers/promises';
import { MongoError } from 'mongodb';

const PATIENCE_MS = 8_000;
const PAUSE_MS = 250;

/**
 * Waits out a short outage of the database within one attempt: it is ours, so it must not use up
 * one of the merchant's. `work` may run several times.
 * @throws whatever `work` throws last
 */
export async function retryDuringOutage<T>(
  work: () => Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const giveUpAt = Date.now() + patienceMs;
  while (true) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof MongoError) || Date.now() >= giveUpAt) throw error;
      await wait(PAUSE_MS);
    }
  }
}
