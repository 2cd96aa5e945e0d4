import { setTimeout as wait } from 'node:timers/promises';

const PATIENCE_MS = 45_000;
const PAUSE_MS = 50;

/** Repeats a call until it answers, as Temporal does with an activity. */
export async function insist<T>(call: () => Promise<T>): Promise<T> {
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      // Temporal repeats none of these.
      const isFinal = error instanceof Error && error.name === 'ApplicationFailure';
      if (isFinal || Date.now() > giveUpAt) throw error;
    }
    await wait(PAUSE_MS);
  }
}
