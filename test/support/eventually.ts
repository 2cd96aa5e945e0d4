import { setTimeout as wait } from 'node:timers/promises';
import { ApplicationFailure } from '@temporalio/common';

const PATIENCE_MS = 30_000;
const PAUSE_MS = 25;

/** Looks again until `look` gives something; bounded, so that what never comes fails in words. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined | null | false>,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const giveUpAt = Date.now() + timeoutMs;
  while (Date.now() < giveUpAt) {
    const result = await look();
    if (result) return result;
    await wait(PAUSE_MS);
  }
  throw new Error(`Waited ${timeoutMs} ms in vain for: ${what}`);
}

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
