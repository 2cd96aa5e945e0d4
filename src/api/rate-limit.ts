import type { Context } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ERROR_CODES, Refusal } from '../domain/errors';
import type { ApiKey } from '../service/access';
import { getAddress, type LimitConfig } from './context';

/** Bursts are allowed within a window. */
const WINDOW_SECONDS = 10;

type Caller = Pick<ApiKey, '_id' | 'account_id' | 'livemode'>;

export interface RateLimits {
  /** Counts a request of a key, and of its account's environment. */
  request(ctx: Context, caller: Caller): Promise<void>;
  create(ctx: Context, caller: Caller): Promise<void>;
  callback(ctx: Context, connector: string): Promise<void>;
}

/**
 * Limits the requests that this process accepts. Each response says how many the key has left, or
 * which limit is exhausted. Sandbox and live are counted separately.
 * @throws Refusal 429 `rate_limited` with `Retry-After`
 * @see docs/api.md#rate-limits
 */
export function createRateLimits(config: LimitConfig): RateLimits {
  const keyLimit = createLimit(config.RATE_LIMIT_PER_SECOND, 'requests');
  const accountLimit = createLimit(config.ACCOUNT_LIMIT_PER_SECOND, 'requests of one account');
  const connectorLimit = createLimit(config.RATE_LIMIT_PER_SECOND, 'callbacks of one connector');
  const label = 'resources created by one account';
  const liveLimit = createLimit(config.CREATE_LIMIT_PER_SECOND, label);
  const sandboxLimit = createLimit(config.SANDBOX_CREATE_LIMIT_PER_SECOND, label);
  return {
    request: async (ctx, { _id, account_id, livemode }) => {
      setHeaders(ctx, await keyLimit(ctx, _id));
      await accountLimit(ctx, `${account_id}:${livemode}`);
    },
    create: async (ctx, { account_id, livemode }) => {
      await (livemode ? liveLimit : sandboxLimit)(ctx, account_id);
    },
    callback: async (ctx, connector) => setHeaders(ctx, await connectorLimit(ctx, connector)),
  };
}

interface LimitState {
  points: number;
  left: number;
  resetSeconds: number;
}

/** Applies a separate limit to each name. */
function createLimit(perSecond: number, what: string) {
  const points = perSecond * WINDOW_SECONDS;
  const limiter = new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  return async (ctx: Context, name: string): Promise<LimitState> => {
    const { refused, remainingPoints, msBeforeNext } = await consumeToken(limiter, name);
    const resetSeconds = secondsUntil({ msBeforeNext });
    const state = { points, left: Math.max(0, remainingPoints), resetSeconds };
    if (!refused) return state;
    setHeaders(ctx, state);
    ctx.set('Retry-After', String(resetSeconds));
    throw new Refusal('rate_limited', `Too many ${what}: at most ${perSecond} a second.`);
  };
}

function secondsUntil({ msBeforeNext }: { msBeforeNext: number }): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1_000));
}

function setHeaders(ctx: Context, { points, left, resetSeconds }: LimitState): void {
  ctx.set({
    'RateLimit-Limit': String(points),
    'RateLimit-Remaining': String(left),
    'RateLimit-Reset': String(resetSeconds),
  });
}

/** Wrong keys, or signatures, that an address may try in a window. */
const FAILURES_MAX = 1_000;

/**
 * Limits the wrong keys of one address. Valid keys are not counted, since callers behind a proxy
 * share an address.
 * @param credential kind of wrong credential, for the message
 * @throws Refusal 429 `rate_limited`, or the error of `authenticate`
 */
export function createFailureLimit(credential = 'API key') {
  const limiter = new RateLimiterMemory({ points: FAILURES_MAX, duration: WINDOW_SECONDS });
  return async <T>(ctx: Context, authenticate: () => Promise<T>): Promise<T> => {
    try {
      return await authenticate();
    } catch (error) {
      if (!(error instanceof Refusal) || ERROR_CODES[error.code].status !== 401) throw error;
      const failures = await limiter.penalty(getAddress(ctx), 1);
      if (failures.consumedPoints <= FAILURES_MAX) throw error;
      const resetSeconds = secondsUntil(failures);
      setHeaders(ctx, { points: FAILURES_MAX, left: 0, resetSeconds });
      ctx.set('Retry-After', String(resetSeconds));
      throw new Refusal('rate_limited', `Too many calls with a wrong ${credential}.`);
    }
  };
}

async function consumeToken(limiter: RateLimiterMemory, name: string) {
  try {
    const { msBeforeNext, remainingPoints } = await limiter.consume(name);
    return { msBeforeNext, remainingPoints, refused: false };
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const { msBeforeNext, remainingPoints } = error;
    return { msBeforeNext, remainingPoints, refused: true };
  }
}

export type Shedding = <T>(livemode: boolean, work: () => Promise<T>) => Promise<T>;

/**
 * Refuses creates beyond the limit immediately, since a waiting one would be too late. Sandbox and
 * live are counted separately.
 * @throws Refusal 503 `temporarily_unavailable`
 * @see docs/operations.md#overload
 */
export function createShedding(atOnce: number): Shedding {
  const running = { live: 0, sandbox: 0 };
  return async (livemode, work) => {
    const environment = livemode ? 'live' : 'sandbox';
    if (running[environment] >= atOnce) {
      throw new Refusal(
        'temporarily_unavailable',
        'Too many creates are under way. Nothing was done: try again, with the same Idempotency-Key.',
      );
    }
    running[environment] += 1;
    try {
      return await work();
    } finally {
      running[environment] -= 1;
    }
  };
}
