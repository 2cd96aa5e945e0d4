import { setTimeout as sleep } from 'node:timers/promises';
import type { Middleware } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { readVisitor } from '../dashboard/frame/visitor';
import { getKey, getRoute } from './context';

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
export function delayRefusals(stopping?: AbortSignal, wait = sleepUntil): Middleware {
  const prompt = new RateLimiterMemory({ points: AT_ONCE_PER_SECOND, duration: 1 });
  let waiting = 0;
  return async (ctx, next) => {
    await next();
    if (!REFUSED.has(ctx.status)) return;
    const account_id = getKey(ctx)?.account_id ?? readVisitor(ctx).account_id;
    const name = account_id ?? `${ctx.method} ${getRoute(ctx)}`;
    const isPrompt = await prompt.consume(name).then(
      () => true,
      (error: unknown) => {
        if (error instanceof RateLimiterRes) return false;
        throw error;
      },
    );
    if (isPrompt || waiting >= WAITING_MAX) return;
    waiting += 1;
    await wait(DELAY_MS, stopping);
    waiting -= 1;
  };
}

async function sleepUntil(delayMs: number, signal?: AbortSignal): Promise<void> {
  await sleep(delayMs, undefined, { signal }).catch(() => undefined);
}
