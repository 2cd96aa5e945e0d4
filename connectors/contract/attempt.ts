/**
 * The service gives up after 30 s, and may then learn that nothing arrived, and return the money.
 */
const ATTEMPT_MS_MAX = 25_000;

/** Attempt of an instruction, which must not reach the bank after its deadline. */
export interface Attempt {
  deadline: Date;
  /** Aborts at the deadline: pass it to the bank's HTTP call. */
  signal: AbortSignal;
  /** @throws Error after the deadline: call it right before the bank is instructed */
  assertInTime(): void;
}

/**
 * Begins an attempt: call it first in the activity.
 * @see docs/connectors.md#one-instruction-one-effect
 */
export function beginAttempt(now: () => Date): Attempt {
  const deadline = new Date(now().getTime() + ATTEMPT_MS_MAX);
  return {
    deadline,
    signal: AbortSignal.timeout(ATTEMPT_MS_MAX),
    assertInTime: () => {
      if (now() < deadline) return;
      throw new Error('The attempt took too long: nothing is sent, and the next one starts over.');
    },
  };
}
