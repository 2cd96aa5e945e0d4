import { randomUUID } from 'node:crypto';
import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import type { MongoClient } from 'mongodb';
import { type ClientAddress, createClientAddress } from '../client-address';
import type { Config } from '../config';
import { createDashboard } from '../dashboard/dashboard';
import { Refusal } from '../domain/errors';
import { isTokenKept, type TokenOwner } from '../keys/pay-token';
import { createPayers } from '../merchants/payers';
import type { ApiMeter } from '../metrics/api';
import { createPayPages } from '../pages/pay';
import { HSTS } from '../pages/security';
import type { Redeliveries } from '../temporal/redeliveries';
import type { Tracing } from '../tracing/tracing';
import { createDenial } from '../webhooks/address';
import { createEndpointLimits } from '../webhooks/endpoint-limits';
import { postOutside } from '../webhooks/post';
import { mountCatalogue } from './catalogue';
import { mountConnectors } from './connectors';
import { type ApiDeps, factsOf, keyOf, requestIdOf } from './context';
import { mountCrypto } from './crypto';
import { answerErrors } from './errors';
import { mountHealth } from './health';
import { createMerchantActs } from './merchant-acts';
import { createMount } from './mount';
import { openApiDocument, SERVICE_VERSION } from './openapi';
import { mountPayments } from './payments';
import { mountPayouts } from './payouts';
import { createRateLimits } from './rate-limit';
import { mountRecipients } from './recipients';
import { mountRefunds } from './refunds';
import { mountSandbox } from './sandbox';
import { traceRequests } from './trace-requests';

export interface AppDeps extends Omit<ApiDeps, 'payers'> {
  mongo: MongoClient;
  redeliveries: Redeliveries;
  /** Traces of requests; none when not given. */
  tracing?: Tracing;
  /** Aborts when the process is about to end, while it still serves. */
  stopping?: AbortSignal;
  config: ApiDeps['config'] &
    Pick<Config, 'WEBHOOK_ALLOW_PRIVATE'> &
    Partial<Pick<Config, 'WEBHOOK_DENY_CIDRS'>>;
  /** Counter of requests, such as that of the process's figures. */
  meter?: ApiMeter;
}

/** Dependencies as the rooms of the app have them. */
type RoomDeps = AppDeps & Pick<ApiDeps, 'payers'>;

/** Test events whose answers one process waits for; one endpoint may hold one. */
const TEST_EVENTS_AT_ONCE = 20;

/** Koa app: the middleware that every request passes, and then the routes. */
export function createApp(given: AppDeps): Koa {
  const { stores, sealer, log } = given;
  const deps = { ...given, payers: createPayers({ accounts: stores.accounts, sealer, log }) };
  const app = new Koa();
  const router = createRouter(deps);
  const pages = createPages(deps);
  const { TRUSTED_PROXIES = '', PUBLIC_URL } = deps.config;
  const clientAddress = createClientAddress(TRUSTED_PROXIES, PUBLIC_URL);
  app.use(nameRequest(clientAddress));
  app.use(partWhenStopping(deps.stopping));
  if (deps.tracing !== undefined) app.use(traceRequests(deps.tracing));
  if (deps.config.PUBLIC_URL.startsWith('https:')) app.use(keepToTls);
  app.use(accessLog(deps));
  app.use(pages.routes());
  app.use(createDashboardPages(deps, clientAddress).routes());
  app.use(answerErrors(deps.log));
  app.use(refuseUnknownRoutes(router));
  app.use(router.routes());
  app.on('error', (err) => deps.log.warn({ err }, 'connection error'));
  return app;
}

function createRouter(deps: RoomDeps): Router {
  // Strict: `/v1/payments/` with an id left out must not answer with the list.
  const router = new Router({ strict: true, sensitive: true });
  const limits = createRateLimits(deps.config);
  const mount = createMount(router, deps, limits);
  mountPayments(mount, deps);
  mountRefunds(mount, deps);
  mountRecipients(mount, deps);
  mountPayouts(mount, deps);
  mountCatalogue(mount, deps);
  mountCrypto(mount, deps);
  mountSandbox(mount, deps);
  mountConnectors(router, deps, limits);
  const { mongo, temporal, now, stopping } = deps;
  mountHealth(router, { mongo, temporal, now, stopping, heartbeats: deps.stores.heartbeats });
  const document = openApiDocument(deps.config.PUBLIC_URL);
  // Once, since it takes longer than most answers.
  const text = JSON.stringify(document);
  router.get('/openapi.json', (ctx) => {
    ctx.type = 'json';
    ctx.body = text;
  });
  return router;
}

function createPages({ stores, keys, temporal, config, now, log }: RoomDeps): Router {
  const linked = <P extends TokenOwner>(payment: P | null): P | null =>
    payment !== null && isTokenKept(keys.pay_token, payment) ? payment : null;
  return createPayPages({
    payments: {
      ...stores.payments,
      byToken: async (hash) => linked(await stores.payments.byToken(hash)),
    },
    cryptoPayments: { byToken: async (hash) => linked(await stores.crypto_payments.byToken(hash)) },
    merchantName: async (account_id) => (await stores.accounts.known(account_id))?.name ?? '',
    cancelPayment: async (payment_id) => {
      await temporal.cancelPayment(payment_id, 'customer');
      const payment = await stores.payments.get(payment_id);
      return payment?.status === 'cancelled' ? 'cancelled' : 'cannot_cancel';
    },
    publicUrl: config.PUBLIC_URL,
    now,
    log,
  });
}

function createDashboardPages({ config, ...deps }: RoomDeps, clientAddress: ClientAddress): Router {
  const isDenied = createDenial(config.WEBHOOK_DENY_CIDRS ?? '');
  return createDashboard({
    ...deps,
    acts: createMerchantActs({ config, ...deps }),
    limits: createEndpointLimits({ slots: TEST_EVENTS_AT_ONCE }),
    post: postOutside(isDenied),
    clientAddress,
    publicUrl: config.PUBLIC_URL,
    allowPrivateWebhooks: config.WEBHOOK_ALLOW_PRIVATE === 'sandbox',
    isDeniedAddress: isDenied,
  });
}

function nameRequest(clientAddress: ClientAddress): Middleware {
  return async (ctx, next) => {
    ctx.state['requestId'] = randomUUID();
    ctx.state['address'] = clientAddress(ctx.req);
    ctx.set('Request-Id', requestIdOf(ctx));
    ctx.set('Service-Version', SERVICE_VERSION);
    // Answers belong to one merchant, and may hold the URL at which a customer pays.
    ctx.set('Cache-Control', 'no-store');
    ctx.set('X-Content-Type-Options', 'nosniff');
    await next();
  };
}

/** Ends a connection with its answer, so that none is in use when the listener closes. */
function partWhenStopping(stopping?: AbortSignal): Middleware {
  return async (ctx, next) => {
    await next();
    if (stopping?.aborted === true) ctx.set('Connection', 'close');
  };
}

const keepToTls: Middleware = async (ctx, next) => {
  ctx.set(HSTS);
  await next();
};

/**
 * Logs a line for each answer: by whom and from where, with the route, since the path of a hosted
 * page holds a secret.
 */
function accessLog({ log, meter }: Pick<AppDeps, 'log' | 'meter'>): Middleware {
  return async (ctx, next) => {
    const begun = performance.now();
    await next();
    const { method, status } = ctx;
    const route = '_matchedRoute' in ctx ? ctx._matchedRoute : undefined;
    const duration = performance.now() - begun;
    const duration_ms = Math.round(duration);
    const facts = { method, route, status, ...factsOf(ctx), duration_ms };
    log.info({ request_id: requestIdOf(ctx), ...facts }, 'answered');
    meter?.answered({
      method,
      route: typeof route === 'string' ? route : 'none',
      status,
      seconds: duration / 1_000,
      livemode: keyOf(ctx)?.livemode,
      replayed: ctx.response.get('Idempotent-Replayed') === 'true',
    });
  };
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
