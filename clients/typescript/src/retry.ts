import { ApiError, ConnectionError } from './errors';

const FIRST_WAIT_MS = 500;
const WAIT_MS_MAX = 8_000;
/** A server that asks for a longer wait than this is not waited for. */
const RETRY_AFTER_MS_MAX = 60_000;

/** Whether a repeat under the same key can help. @param isRepeatable it does no harm to run twice */
export function shouldRetry(error: unknown, isRepeatable: boolean): boolean {
  if (!(error instanceof ApiError)) return isRepeatable && error instanceof ConnectionError;
  if (error.status === 429) return true; // The call had no effect.
  if (!isRepeatable) return false;
  return error.status >= 500 || error.code === 'idempotency_request_in_progress';
}

/**
 * Milliseconds until the next attempt: twice as long after each, with jitter, and at least
 * `Retry-After`. Undefined when the server asks for too long a wait.
 * @param retry 0 before the first retry
 * @param random from 0 to 1
 */
export function chooseWait(
  retry: number,
  retryAfter: string | null,
  random: number,
): number | undefined {
  const backoff = Math.min(WAIT_MS_MAX, FIRST_WAIT_MS * 2 ** retry) * (0.5 + random / 2);
  const afterMs = 1_000 * Number(retryAfter ?? 0);
  if (!(afterMs > 0)) return backoff; // Also when it is a date.
  // Jitter on top: those who wait for the same second do not all come at once.
  return afterMs > RETRY_AFTER_MS_MAX ? undefined : Math.max(backoff, afterMs + random * 250);
}
