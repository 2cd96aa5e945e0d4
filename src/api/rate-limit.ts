import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { toCustomerNetwork } from '../base/networks';
import { readVisitor } from '../dashboard/frame/context';
import { ERROR_CODES, Refusal } from '../domain/errors';
import type { ApiKey } from '../service/access';
import { getAddress, getKey, getRoute, type LimitConfig } from './context';

/** Allows bursts. */
const WINDOW_SECONDS = 10;
const ROWS_PER_REQUEST = 10;
/** Each is a workflow that posts, after the response. */
const DELIVERIES_PER_SECOND = 10;

type Caller = Pick<ApiKey, '_id' | 'account_id' | 'livemode'>;

export interface RateLimits {
  request(ctx: Context, caller: Caller): Promise<void>;
  /** Counts rows: a long list costs as much as several requests. */
  rows(ctx: Context, caller: Caller, rows: number): Promise<void>;
  create(ctx: Context, caller: Caller): Promise<void>;
  /** Webhooks that a merchant asks for: test events and redeliveries. */
  delivery(ctx: Context, caller: Caller): Promise<void>;
  callback(ctx: Context, connector: string): Promise<void>;
}

/**
 * Limits requests by key, and by account and environment. Each response says how many the key has
 * left, or which limit is exhausted.
 * @throws Refusal 429 `rate_limited` with `Retry-After`
 * @see docs/api.md#rate-limits
 */
export function createRateLimits(config: LimitConfig): RateLimits {
  const count = async (ctx: Context, { _id, account_id, livemode }: Caller, cost: number) => {
    setHeaders(ctx, await keyLimit(ctx, _id, cost));
    await accountLimit(ctx, `${account_id}:${livemode}`, cost);
  };
  const keyLimit = createLimit(config.RATE_LIMIT_PER_SECOND, 'requests');
  const accountLimit = createLimit(config.ACCOUNT_LIMIT_PER_SECOND, 'requests of one account');
  const connectorLimit = createLimit(config.RATE_LIMIT_PER_SECOND, 'callbacks of one connector');
  const label = 'resources created by one account';
  const liveLimit = createLimit(config.CREATE_LIMIT_PER_SECOND, label);
  const sandboxLimit = createLimit(config.SANDBOX_CREATE_LIMIT_PER_SECOND, label);
  const deliveries = 'test events and redeliveries of one account';
  const deliveryLimit = createLimit(DELIVERIES_PER_SECOND, deliveries);
  return {
    request: (ctx, caller) => count(ctx, caller, 1),
    rows: async (ctx, caller, rows) => {
      const cost = Math.floor(rows / ROWS_PER_REQUEST);
      if (cost > 0) await count(ctx, caller, cost);
    },
    create: async (ctx, { account_id, livemode }) => {
      await (livemode ? liveLimit : sandboxLimit)(ctx, account_id);
    },
    delivery: async (ctx, { account_id, livemode }) => {
      await deliveryLimit(ctx, `${account_id}:${livemode}`);
    },
    callback: async (ctx, connector) => setHeaders(ctx, await connectorLimit(ctx, connector)),
  };
}

interface LimitState {
  points: number;
  left: number;
  resetSeconds: number;
}

function createLimit(perSecond: number, what: string) {
  const points = perSecond * WINDOW_SECONDS;
  const limiter = new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  return async (ctx: Context, name: string, cost = 1): Promise<LimitState> => {
    const result = await consume(limiter, name, cost);
    const left = Math.max(0, result.remainingPoints);
    const resetSeconds = secondsUntil(result);
    const state = { points, left, resetSeconds };
    if (result.consumedPoints <= points) return state;
    setHeaders(ctx, state);
    ctx.set('Retry-After', String(resetSeconds));
    throw new Refusal('rate_limited', `Too many ${what}: at most ${perSecond} a second.`);
  };
}

/** Counts calls, also above the limit. */
async function consume(limiter: RateLimiterMemory, name: string, cost = 1) {
  return await limiter.consume(name, cost).catch((error: unknown) => {
    if (error instanceof RateLimiterRes) return error;
    throw error;
  });
}

function secondsUntil({ msBeforeNext }: RateLimiterRes): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1_000));
}

function setHeaders(ctx: Context, { points, left, resetSeconds }: LimitState): void {
  ctx.set({
    'RateLimit-Limit': String(points),
    'RateLimit-Remaining': String(left),
    'RateLimit-Reset': String(resetSeconds),
  });
}

/** Per address and window. */
const FAILURES_MAX = 1_000;

const KNOWN_MAX = 10_000;

/**
 * Limits the wrong credentials of a network before the next look-up. Callers behind a proxy share
 * an address, so valid keys do not count, and go on where they were valid before.
 * @param credential for the message
 * @throws Refusal 429 `rate_limited`, or the error of `authenticate`
 */
export function createFailureLimit(credential = 'API key') {
  const limiter = new RateLimiterMemory({ points: FAILURES_MAX, duration: WINDOW_SECONDS });
  const knownCallers = new Set<string>();
  const remember = (caller: string) => {
    const [oldest] = knownCallers;
    if (knownCallers.size >= KNOWN_MAX && oldest !== undefined) knownCallers.delete(oldest);
    knownCallers.add(caller);
  };
  /** @param name must reveal no secret */
  return async <T>(ctx: Context, name: string, authenticate: () => Promise<T>): Promise<T> => {
    const network = toCustomerNetwork(getAddress(ctx));
    const caller = `${network} ${name}`;
    const refuse = (failures: RateLimiterRes) => {
      const resetSeconds = secondsUntil(failures);
      setHeaders(ctx, { points: FAILURES_MAX, left: 0, resetSeconds });
      ctx.set('Retry-After', String(resetSeconds));
      return new Refusal('rate_limited', `Too many calls with a wrong ${credential}.`);
    };
    const earlier = await limiter.get(network);
    const isOver = earlier !== null && earlier.consumedPoints >= FAILURES_MAX;
    if (isOver && !knownCallers.has(caller)) throw refuse(earlier);
    try {
      const result = await authenticate();
      remember(caller);
      return result;
    } catch (error) {
      if (!(error instanceof Refusal) || ERROR_CODES[error.code].status !== 401) throw error;
      const failures = await limiter.penalty(network, 1);
      throw failures.consumedPoints <= FAILURES_MAX ? error : refuse(failures);
    }
  };
}

/** Limit per account, or without one per route. */
const AT_ONCE_PER_SECOND = 5;
const DELAY_MS = 3_000;
/** Limit above which refusals are answered at once, so that a flood takes no memory. */
const WAITING_MAX = 2_000;

const REFUSED = new Set([429, 503]);

/**
 * Delays callers who repeat at once after a refusal, and would take the processor from others.
 * @param stopping aborts the waits
 * @see docs/operations.md#overload
 */
export function delayRefusals(
  stopping?: AbortSignal,
  wait = (delayMs: number, signal?: AbortSignal): Promise<void> =>
    sleep(delayMs, undefined, { signal }).catch(() => undefined),
): Middleware {
  const prompt = new RateLimiterMemory({ points: AT_ONCE_PER_SECOND, duration: 1 });
  let waiting = 0;
  return async (ctx, next) => {
    await next();
    if (!REFUSED.has(ctx.status)) return;
    const account_id = getKey(ctx)?.account_id ?? readVisitor(ctx).account_id;
    const name = account_id ?? `${ctx.method} ${getRoute(ctx)}`;
    const { consumedPoints } = await consume(prompt, name);
    if (consumedPoints <= AT_ONCE_PER_SECOND || waiting >= WAITING_MAX) return;
    waiting += 1;
    await wait(DELAY_MS, stopping);
    waiting -= 1;
  };
}
