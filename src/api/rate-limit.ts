import type { Context } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Refusal } from '../domain/errors';

/** Bursts are welcome within this window. */
const WINDOW_SECONDS = 10;

export type RateLimit = (ctx: Context, keyId: string) => Promise<void>;

/**
 * So many requests a key and window, in this process; each answer says what is left.
 * @throws Refusal 429 `rate_limited` with `Retry-After`
 */
export function createRateLimit(perSecond: number): RateLimit {
  const points = perSecond * WINDOW_SECONDS;
  const limiter = new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  return async (ctx, keyId) => {
    const left = await take(limiter, keyId);
    const reset = Math.max(1, Math.ceil(left.msBeforeNext / 1_000));
    ctx.set({
      'RateLimit-Limit': String(points),
      'RateLimit-Remaining': String(Math.max(0, left.remainingPoints)),
      'RateLimit-Reset': String(reset),
    });
    if (left.refused) {
      throw new Refusal('rate_limited', `Too many requests: at most ${perSecond} a second.`, {
        headers: { 'Retry-After': String(reset) },
      });
    }
  };
}

async function take(limiter: RateLimiterMemory, keyId: string) {
  try {
    const { msBeforeNext, remainingPoints } = await limiter.consume(keyId);
    return { msBeforeNext, remainingPoints, refused: false };
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const { msBeforeNext, remainingPoints } = error;
    return { msBeforeNext, remainingPoints, refused: true };
  }
}
