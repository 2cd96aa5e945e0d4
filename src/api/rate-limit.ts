import type { Context } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ERROR_CODES, Refusal } from '../domain/errors';

/** Window of the limit, within which bursts are welcome. */
const WINDOW_SECONDS = 10;

export type RateLimit = (ctx: Context, keyId: string) => Promise<void>;

/**
 * Limits the requests of a key in this process; each answer says how many are left.
 * @throws Refusal 429 `rate_limited` with `Retry-After`
 */
export function createRateLimit(perSecond: number): RateLimit {
  const points = perSecond * WINDOW_SECONDS;
  const limiter = new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  return async (ctx, keyId) => {
    const left = await consumeToken(limiter, keyId);
    const reset = Math.max(1, Math.ceil(left.msBeforeNext / 1_000));
    ctx.set({
      'RateLimit-Limit': String(points),
      'RateLimit-Remaining': String(Math.max(0, left.remainingPoints)),
      'RateLimit-Reset': String(reset),
    });
    if (left.refused) {
      ctx.set('Retry-After', String(reset));
      throw new Refusal('rate_limited', `Too many requests: at most ${perSecond} a second.`);
    }
  };
}

/** Number of wrong keys that an address may try in a window. */
const FAILURES_MAX = 1_000;

/**
 * Limits the wrong keys of one address. Valid keys are not counted, since callers behind a proxy
 * share an address.
 * @throws Refusal 429 `rate_limited`, or the error of `authenticate`
 */
export function createFailureLimit() {
  const limiter = new RateLimiterMemory({ points: FAILURES_MAX, duration: WINDOW_SECONDS });
  return async <T>(ctx: Context, authenticate: () => Promise<T>): Promise<T> => {
    try {
      return await authenticate();
    } catch (error) {
      if (!(error instanceof Refusal) || ERROR_CODES[error.code].status !== 401) throw error;
      const failures = await limiter.penalty(ctx.ip, 1);
      if (failures.consumedPoints <= FAILURES_MAX) throw error;
      ctx.set('Retry-After', String(Math.max(1, Math.ceil(failures.msBeforeNext / 1_000))));
      throw new Refusal('rate_limited', 'Too many calls with a wrong API key.');
    }
  };
}

async function consumeToken(limiter: RateLimiterMemory, keyId: string) {
  try {
    const { msBeforeNext, remainingPoints } = await limiter.consume(keyId);
    return { msBeforeNext, remainingPoints, refused: false };
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const { msBeforeNext, remainingPoints } = error;
    return { msBeforeNext, remainingPoints, refused: true };
  }
}
