import type { Context, Middleware } from 'koa';
import type { JsonValue } from '../base/json';
import { ENDPOINTS } from '../domain/wire';
import type { Endpoint } from '../domain/wire/endpoint';
import { type RequestRecorder, redactPath } from '../service/events/requests';

import { isIdempotencyKey } from './admission';
import { getKey, getLogFields, getRequestId, getRoute, getSentBody } from './context';
import { koaPath } from './mount';

const BY_ROUTE = new Map(
  ENDPOINTS.map((one): [string, Endpoint] => [`${one.method} ${koaPath(one.path)}`, one]),
);

/** @see docs/api.md#requests */
export function recordRequests(
  recorder: Pick<RequestRecorder, 'record'>,
  now: () => Date,
): Middleware {
  return async (ctx, next) => {
    const at = now();
    const startedAt = performance.now();
    await next();
    const key = getKey(ctx);
    const route = getRoute(ctx);
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    const endpoint = BY_ROUTE.get(`${isRead ? 'get' : ctx.method.toLowerCase()} ${route}`);
    if (key === undefined || route === undefined || endpoint === undefined) return;
    if (isRead && ctx.status < 400) return;
    const sentKey = ctx.get('Idempotency-Key');
    recorder.record({
      request_id: getRequestId(ctx),
      account_id: key.account_id,
      livemode: key.livemode,
      key_id: key._id,
      method: ctx.method,
      path: redactPath(route, getSegments(ctx)),
      status: ctx.status,
      code: getLogFields(ctx).code ?? null,
      duration_ms: Math.round(performance.now() - startedAt),
      at,
      readExchange: () => ({
        endpoint,
        params: getSegments(ctx),
        query: Object.fromEntries(
          Object.entries(ctx.query).map(([name, value = '']) => [name, value]),
        ),
        request: getSentBody(ctx),
        status: ctx.status,
        response: parseResponse(ctx.body),
        idempotencyKey: isIdempotencyKey(sentKey) ? sentKey : undefined,
      }),
    });
  };
}

function getSegments(ctx: Context): Record<string, string> {
  const params: unknown = 'params' in ctx ? ctx.params : {};
  const entries = Object.entries(Object(params)).map(([name, value]) => [name, String(value)]);
  return Object.fromEntries(entries);
}

function parseResponse(body: unknown): JsonValue | undefined {
  if (body === undefined || body === null) return undefined;
  const value: JsonValue = JSON.parse(typeof body === 'string' ? body : JSON.stringify(body));
  return value;
}
