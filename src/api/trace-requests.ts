import type { Middleware } from 'koa';
import { REQUEST } from '../base/tracing/ids';
import type { Tracing } from '../base/tracing/tracing';
import { getRequestId } from './context';

const UNTRACED = new Set(['/healthz', '/readyz']);

/** Traces requests by route, since a path may contain data of a merchant or a customer. */
export function traceRequests(tracing: Tracing): Middleware {
  return async (ctx, next) => {
    if (UNTRACED.has(ctx.path)) return await next();
    const context = { requestId: getRequestId(ctx), spanName: REQUEST };
    await tracing.span(ctx.method, 'server', context, async (span) => {
      await next();
      const matchedRoute: unknown = '_matchedRoute' in ctx ? ctx._matchedRoute : undefined;
      const route = typeof matchedRoute === 'string' ? matchedRoute : '';
      span.name(`${ctx.method} ${route}`.trim());
      span.setAttributes({
        'http.request.method': ctx.method,
        'http.route': route,
        'http.response.status_code': ctx.status,
      });
      if (ctx.status >= 500) span.fail();
    });
  };
}
