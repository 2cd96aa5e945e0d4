import { setTimeout as wait } from 'node:timers/promises';
import { MongoError } from 'mongodb';

const PATIENCE_MS = 8_000;
const PAUSE_MS = 250;

/**
 * Waits out a short outage of the database, which must not use up an attempt.
 * @param work may run several times
 * @throws the last error of `work`
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
