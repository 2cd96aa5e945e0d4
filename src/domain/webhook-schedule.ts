/** @see spec §6.3 */
export const ATTEMPTS_MAX = 12;
export const WINDOW_MS = 24 * 60 * 60 * 1_000;
/** Decided: 11 waits that double. 42 s, 84 s, … 11 h 57 min: together 7 minutes short of 24 h. */
export const FIRST_WAIT_MS = 42_000;

/** Spreads what failed together: up to a twentieth of the wait, and never more than a minute. */
export const JITTER_SHARE = 1 / 20;
export const JITTER_MAX_MS = 60_000;
const DELAY_MIN_MS = 1_000;

/** When attempt `attempt` (1 to 12) is due, in ms after the first one started. */
export function attemptOffsetMs(attempt: number): number {
  if (!Number.isInteger(attempt) || attempt < 1 || attempt > ATTEMPTS_MAX) {
    throw new RangeError(`Attempt ${attempt} is not one of 1 to ${ATTEMPTS_MAX}.`);
  }
  return FIRST_WAIT_MS * (2 ** (attempt - 1) - 1);
}

export interface FailedAttempt {
  /** The one that failed, 1 to 11. */
  attempt: number;
  firstAtMs: number;
  nowMs: number;
  /** What the receiver asked for, if it did. */
  retryAfterMs?: number | undefined;
  /** A random number from 0 to 1. */
  jitter: number;
}

/**
 * How long to wait after a failed attempt, in ms. It aims at the next attempt's offset from the
 * first, so that slow answers don't add up. `Retry-After` can only push it later, and by no more
 * than an even share of the time left: the attempts that remain all fit into the 24 h. One that
 * was pushed late is caught up with at half the usual waits, not in a burst.
 *
 * Only a service that was itself away can be past the window; what is left then follows closely.
 */
export function nextAttemptDelayMs(failed: FailedAttempt): number {
  const { attempt, firstAtMs, nowMs, retryAfterMs = 0, jitter } = failed;
  const dueAtMs = firstAtMs + attemptOffsetMs(attempt + 1);
  const waitMs = FIRST_WAIT_MS * 2 ** (attempt - 1);
  const jitterMs = Math.min(waitMs * JITTER_SHARE, JITTER_MAX_MS) * jitter;
  const leftMs = firstAtMs + attemptOffsetMs(ATTEMPTS_MAX) - nowMs;
  const shareMs = leftMs / (ATTEMPTS_MAX - attempt);
  const delayMs = Math.max(
    dueAtMs + jitterMs - nowMs,
    Math.min(waitMs / 2, shareMs),
    Math.min(retryAfterMs, shareMs),
    DELAY_MIN_MS,
  );
  return Math.round(delayMs);
}
