import { setTimeout as wait } from 'node:timers/promises';
import { ApplicationFailure } from '@temporalio/activity';

const PATIENCE_MS = 30_000;
const PAUSE_MS = 50;

/** Repeats a call until it answers, as Temporal does with an activity. */
export async function retryUntilDone<T>(call: () => Promise<T>): Promise<T> {
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const failure = error instanceof ApplicationFailure ? error : undefined;
      if (failure?.nonRetryable || Date.now() > giveUpAt) throw error;
      await wait(Number(failure?.nextRetryDelay ?? PAUSE_MS));
    }
  }
}
