import type { Context } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Config } from '../config';
import { ERROR_CODES, Refusal } from '../domain/errors';
import type { KeyDocument } from '../store/keys';
import { addressOf } from './address';

/** Window of the limits, within which bursts are welcome. */
const WINDOW_SECONDS = 10;

export type LimitConfig = Pick<
  Config,
  | 'RATE_LIMIT_PER_SECOND'
  | 'ACCOUNT_LIMIT_PER_SECOND'
  | 'CREATE_LIMIT_PER_SECOND'
  | 'SANDBOX_CREATE_LIMIT_PER_SECOND'
  | 'CREATES_AT_ONCE'
>;

type Caller = Pick<KeyDocument, '_id' | 'account_id' | 'livemode'>;

export interface RateLimits {
  /** Counts a request of a key, and of its account's environment. */
  request(ctx: Context, caller: Caller): Promise<void>;
  /** Counts a resource that is to be made; these cost the most. */
  create(ctx: Context, caller: Caller): Promise<void>;
  /** Counts a callback of a connector. */
  callback(ctx: Context, connector: string): Promise<void>;
}

/**
 * Limits the requests that this process takes; each answer says how many the key has left, or of
 * which limit none is left. Sandbox and live are counted apart.
 * @throws Refusal 429 `rate_limited` with `Retry-After`
 * @see docs/api.md#rate-limits
 */
export function createRateLimits(config: LimitConfig): RateLimits {
  const ofKey = createLimit(config.RATE_LIMIT_PER_SECOND, 'requests');
  const ofAccount = createLimit(config.ACCOUNT_LIMIT_PER_SECOND, 'requests of one account');
  const ofConnector = createLimit(config.RATE_LIMIT_PER_SECOND, 'callbacks of one connector');
  const creating = 'resources created by one account';
  const ofLive = createLimit(config.CREATE_LIMIT_PER_SECOND, creating);
  const ofSandbox = createLimit(config.SANDBOX_CREATE_LIMIT_PER_SECOND, creating);
  return {
    request: async (ctx, { _id, account_id, livemode }) => {
      tell(ctx, await ofKey(ctx, _id));
      await ofAccount(ctx, `${account_id}:${livemode}`);
    },
    create: async (ctx, { account_id, livemode }) => {
      await (livemode ? ofLive : ofSandbox)(ctx, account_id);
    },
    callback: async (ctx, connector) => tell(ctx, await ofConnector(ctx, connector)),
  };
}

interface Standing {
  points: number;
  left: number;
  resetSeconds: number;
}

/** A limit of its own, for each name that it is asked for. */
function createLimit(perSecond: number, what: string) {
  const points = perSecond * WINDOW_SECONDS;
  const limiter = new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  return async (ctx: Context, name: string): Promise<Standing> => {
    const { refused, remainingPoints, msBeforeNext } = await consumeToken(limiter, name);
    const resetSeconds = secondsUntil({ msBeforeNext });
    const standing = { points, left: Math.max(0, remainingPoints), resetSeconds };
    if (!refused) return standing;
    tell(ctx, standing);
    ctx.set('Retry-After', String(resetSeconds));
    throw new Refusal('rate_limited', `Too many ${what}: at most ${perSecond} a second.`);
  };
}

/** Whole seconds until the window ends, at least one. */
function secondsUntil({ msBeforeNext }: { msBeforeNext: number }): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1_000));
}

function tell(ctx: Context, { points, left, resetSeconds }: Standing): void {
  ctx.set({
    'RateLimit-Limit': String(points),
    'RateLimit-Remaining': String(left),
    'RateLimit-Reset': String(resetSeconds),
  });
}

/** Number of wrong keys, or signatures, that an address may try in a window. */
const FAILURES_MAX = 1_000;

/**
 * Limits the wrong keys of one address. Valid keys are not counted, since callers behind a proxy
 * share an address.
 * @param wrong what is wrong about them
 * @throws Refusal 429 `rate_limited`, or the error of `authenticate`
 */
export function createFailureLimit(wrong = 'API key') {
  const limiter = new RateLimiterMemory({ points: FAILURES_MAX, duration: WINDOW_SECONDS });
  return async <T>(ctx: Context, authenticate: () => Promise<T>): Promise<T> => {
    try {
      return await authenticate();
    } catch (error) {
      if (!(error instanceof Refusal) || ERROR_CODES[error.code].status !== 401) throw error;
      const failures = await limiter.penalty(addressOf(ctx), 1);
      if (failures.consumedPoints <= FAILURES_MAX) throw error;
      const resetSeconds = secondsUntil(failures);
      tell(ctx, { points: FAILURES_MAX, left: 0, resetSeconds });
      ctx.set('Retry-After', String(resetSeconds));
      throw new Refusal('rate_limited', `Too many calls with a wrong ${wrong}.`);
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
