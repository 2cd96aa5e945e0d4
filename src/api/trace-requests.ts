import type { Middleware } from 'koa';
import { REQUEST } from '../tracing/ids';
import type { Tracing } from '../tracing/tracing';
import { requestIdOf } from './context';

/** Paths that supervisors ask for all the time. */
const UNTOLD = new Set(['/healthz', '/readyz']);

/** Traces each request by its route, since a path may hold what is a merchant's or a customer's. */
export function traceRequests(tracing: Tracing): Middleware {
  return async (ctx, next) => {
    if (UNTOLD.has(ctx.path)) return await next();
    const place = { requestId: requestIdOf(ctx), own: REQUEST };
    await tracing.span(ctx.method, 'server', place, async (span) => {
      await next();
      const matched: unknown = '_matchedRoute' in ctx ? ctx._matchedRoute : undefined;
      const route = typeof matched === 'string' ? matched : '';
      span.name(`${ctx.method} ${route}`.trim());
      span.tell({
        'http.request.method': ctx.method,
        'http.route': route,
        'http.response.status_code': ctx.status,
      });
      if (ctx.status >= 500) span.fail();
    });
  };
}
