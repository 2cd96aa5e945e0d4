import { randomUUID } from 'node:crypto';
import Router from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
import { type ClientAddress, createClientAddress } from '../base/networks';
import { REQUEST, type Tracing } from '../base/tracing/tracing';
import type { Config } from '../config';
import { createDashboard } from '../dashboard/dashboard';
import { readVisitor } from '../dashboard/frame/context';
import { Refusal, unavailable } from '../domain/errors';
import { ENDPOINTS } from '../domain/wire';
import type { Endpoint } from '../domain/wire/endpoint';
import { createDocsSite } from '../pages/docs-site';
import { createPayPages } from '../pages/pay';
import { HSTS, NOTHING_ALLOWED } from '../pages/security';
import type { Redeliveries } from '../service/events/redeliveries';
import { type RequestRecorder, redactPath } from '../service/events/requests';
import { checkDependencies, type EpochGuard, type HealthDeps } from '../service/installation/epoch';
import { createPayers } from '../service/money/payers';
import { createPaymentPages } from '../service/money/payments';
import { createShares } from '../service/shares';
import { createEndpointLimits } from '../webhooks/endpoint-limits';
import { postOutside } from '../webhooks/post';
import { createDenyCheck } from '../webhooks/url';
import { isIdempotencyKey } from './admission';
import { mountConnectors } from './callbacks';
import { type ApiDeps, getKey, getLogFields, getRequestId, getRoute, getSentBody } from './context';
import { answerErrors } from './error-middleware';
import type { ApiMeter } from './metrics';
import { createMount, koaPath } from './mount';
import { openApiDocument, SERVICE_VERSION } from './openapi';
import { createRateLimits, delayRefusals } from './rate-limit';
import { mountRoutes } from './routes';

interface AppDeps extends Omit<ApiDeps, 'payers' | 'runInShare' | 'webhookUrls'> {
  redeliveries: Redeliveries;
  tracing?: Tracing;
  stopping?: AbortSignal;
  config: ApiDeps['config'] &
    Pick<Config, 'WEBHOOK_ALLOW_PRIVATE'> &
    Partial<Pick<Config, 'WEBHOOK_DENY_CIDRS'>>;
  meter?: ApiMeter;
  recorder?: Pick<RequestRecorder, 'record'>;
  /** Separate connections, so that visitors take none from the API. */
  dashboard?: Pick<ApiDeps, 'mongo' | 'stores'>;
  visitCostsMax?: { session: number; account: number };
  epochs?: Pick<EpochGuard, 'fault'>;
}

const TEST_EVENTS_AT_ONCE = 20;

export function createApp(params: AppDeps): Koa {
  const { config, now, log, stores, encrypter } = params;
  const payers = createPayers({ accounts: stores.accounts, encrypter, log });
  const webhookUrls = {
    allowPrivate: config.WEBHOOK_ALLOW_PRIVATE === 'sandbox',
    isDenied: createDenyCheck(config.WEBHOOK_DENY_CIDRS ?? ''),
  };
  const runInShare = createShares(config.CREATES_AT_ONCE);
  const deps = { ...params, payers, runInShare, webhookUrls };
  const app = new Koa();
  // Strict: `/v1/payments/` with a missing id must not return the list.
  const router = new Router({ strict: true, sensitive: true });
  const limits = createRateLimits(config);
  mountRoutes(createMount(router, deps, limits), deps);
  mountConnectors(router, deps, limits);
  mountHealth(router, { ...deps, heartbeats: stores.heartbeats });
  const openApi = JSON.stringify(openApiDocument(config.PUBLIC_URL));
  router.get('/openapi.json', (ctx) => {
    ctx.type = 'json';
    ctx.body = openApi;
  });
  const { TRUSTED_PROXIES = '', PUBLIC_URL: publicUrl } = config;
  const clientAddress = createClientAddress(TRUSTED_PROXIES, publicUrl);
  app.use(delayRefusals(deps.stopping));
  app.use(nameRequest(clientAddress));
  app.use(async (ctx, next) => {
    await next();
    if (deps.stopping?.aborted === true) ctx.set('Connection', 'close');
  });
  if (deps.tracing !== undefined) app.use(traceRequests(deps.tracing));
  if (publicUrl.startsWith('https:')) {
    app.use(async (ctx, next) => {
      ctx.set(HSTS);
      await next();
    });
  }
  app.use(accessLog(deps));
  if (deps.recorder !== undefined) app.use(recordRequests(deps.recorder, now));
  app.use(refusePagesAfterRestore(deps));
  app.use(createPayPages({ ...createPaymentPages(deps), publicUrl, log }).routes());
  const dashboard = createDashboard({
    ...deps,
    ...deps.dashboard,
    limits: createEndpointLimits({ slots: TEST_EVENTS_AT_ONCE }),
    post: postOutside(webhookUrls.isDenied),
    clientAddress,
    publicUrl,
    isSecondFactorRequired: config.SECOND_FACTOR === 'required',
  });
  app.use(dashboard.routes());
  app.use(createDocsSite({ publicUrl }).routes());
  app.use(answerErrors(log));
  app.use(refuseAfterRestore(deps));
  app.use(refuseUnknownRoutes(router));
  app.use(router.routes());
  app.on('error', (err) => log.warn({ err }, 'connection error'));
  return app;
}

function nameRequest(clientAddress: ClientAddress): Middleware {
  return async (ctx, next) => {
    ctx.state['requestId'] = randomUUID();
    ctx.state['address'] = clientAddress(ctx.req);
    ctx.set('Request-Id', getRequestId(ctx));
    ctx.set('Service-Version', SERVICE_VERSION);
    // A response may contain the URL of a payment page.
    ctx.set('Cache-Control', 'no-store');
    ctx.set(NOTHING_ALLOWED);
    await next();
  };
}

const READS = ['GET', 'HEAD', 'OPTIONS'];

/** Refuses writes while MongoDB is older than Temporal: a repeat would pay again. */
function refuseAfterRestore({ epochs }: Pick<AppDeps, 'epochs'>): Middleware {
  return async (ctx, next) => {
    const fault = READS.includes(ctx.method) ? undefined : epochs?.fault();
    if (fault !== undefined) throw unavailable('The service is being restored.', new Error(fault));
    await next();
  };
}

function refusePagesAfterRestore({ epochs }: Pick<AppDeps, 'epochs'>): Middleware {
  return async (ctx, next) => {
    const isPage = /^[/](?:pay|dashboard)(?:[/]|$)/.test(ctx.path);
    if (!isPage || READS.includes(ctx.method) || epochs?.fault() === undefined) return await next();
    ctx.status = 503;
    ctx.set('Retry-After', '60');
    ctx.body = 'The service is being restored. Try again later.';
  };
}

/** Logs the route, since the path of a hosted page contains a secret. */
function accessLog({ log, meter }: Pick<AppDeps, 'log' | 'meter'>): Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now();
    await next();
    const { method, status } = ctx;
    const route = getRoute(ctx);
    const duration = performance.now() - startedAt;
    const duration_ms = Math.round(duration);
    const who = getLogFields(ctx);
    const facts = { method, route, status, ...who, duration_ms };
    log.info({ request_id: getRequestId(ctx), ...facts }, 'answered');
    meter?.answered({
      method,
      route: route ?? 'none',
      status,
      seconds: duration / 1_000,
      livemode: getKey(ctx)?.livemode,
      replayed: ctx.response.get('Idempotent-Replayed') === 'true',
      code: who.code,
      attempt: readVisitor(ctx),
    });
  };
}

const UNTRACED = new Set(['/healthz', '/readyz']);

/** Traces by route, since a path may contain personal data. */
function traceRequests(tracing: Tracing): Middleware {
  return async (ctx, next) => {
    if (UNTRACED.has(ctx.path)) return await next();
    const context = { requestId: getRequestId(ctx), spanName: REQUEST };
    await tracing.span(ctx.method, 'server', context, async (span) => {
      await next();
      const route = getRoute(ctx) ?? '';
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

const BY_ROUTE = new Map(
  ENDPOINTS.map((one): [string, Endpoint] => [`${one.method} ${koaPath(one.path)}`, one]),
);

/** @see docs/api.md#requests */
function recordRequests(recorder: Pick<RequestRecorder, 'record'>, now: () => Date): Middleware {
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
        response:
          ctx.body == null
            ? undefined
            : JSON.parse(typeof ctx.body === 'string' ? ctx.body : JSON.stringify(ctx.body)),
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

function refuseUnknownRoutes(router: Router): Middleware {
  return async (ctx, next) => {
    const match = router.match(ctx.path, ctx.method);
    if (match.route) return await next();
    if (match.path.length === 0) throw new Refusal('route_not_found', 'There is no such route.');
    const allowed = [...new Set(match.path.flatMap((layer) => layer.methods))].join(', ');
    ctx.set('Allow', allowed);
    throw new Refusal('method_not_allowed', `This route takes ${allowed}.`);
  };
}

/**
 * `/healthz`: the process runs. `/readyz`: Temporal and MongoDB answer, a worker polls, and the
 * process is not stopping; `/readyz?only=api` checks only the process.
 */
export function mountHealth(
  router: Router,
  deps: HealthDeps & { stopping?: AbortSignal | undefined },
): void {
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  // Unauthenticated callers share one check, however often they request it.
  let pendingCheck: ReturnType<typeof checkDependencies> | undefined;
  const checkOnce = () => {
    pendingCheck ??= checkDependencies(deps).finally(() => {
      pendingCheck = undefined;
    });
    return pendingCheck;
  };
  router.get('/readyz', async (ctx) => {
    const api = deps.stopping?.aborted !== true;
    const parts = ctx.query['only'] === 'api' ? { api } : { ...(await checkOnce()), api };
    const missing = Object.entries(parts)
      .filter(([, up]) => !up)
      .map(([part]) => part);
    ctx.status = missing.length === 0 ? 200 : 503;
    if (missing.length > 0) ctx.set('Retry-After', '1');
    ctx.body = { status: missing.length === 0 ? 'ready' : 'not_ready', missing };
  });
}
