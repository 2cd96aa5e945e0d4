import Router from '@koa/router';
import { addAsset } from '../pages/assets';
import { pageHeaders, seeOther } from '../pages/security';
import { createSignInLanes } from '../service/merchants/team/sign-in';
import { ACCESS_ROUTES } from './account/access';
import { BRAND_ROUTES } from './account/brand';
import { LOG_ROUTES } from './account/logs';
import { PROFILE_ROUTES, SECOND_FACTOR_ROUTES } from './account/profile';
import { CRYPTO_ROUTES, WALLET_ROUTES } from './crypto/crypto';
import { DISPUTE_ROUTES } from './disputes/disputes';
import { DASHBOARD_CSS, DASHBOARD_JS } from './frame/assets';
import {
  createVisitLimits,
  type Dashboard,
  deviceCookie,
  HOME_PATH,
  sessionCookie,
  VISIT_COSTS_MAX,
} from './frame/context';
import { sendNotice } from './frame/layout';
import type { DashboardDeps, Route } from './frame/route';
import { addSignedIn } from './frame/signed-in';
import { BALANCE_ROUTES } from './overview/balances';
import { GETTING_STARTED_ROUTE, OVERVIEW_ROUTES } from './overview/overview';
import { PAYMENTS, PAYOUTS, REFUNDS } from './resources/kinds';
import { listRoutes } from './resources/list';
import { RESOURCE_ROUTES } from './resources/pages';
import { addNewPassword } from './sign-in/new-password';
import { addSignIn } from './sign-in/sign-in';
import { DELIVERY_ROUTES, SEND_ROUTES } from './webhooks/deliveries';
import { SECRET_ROUTES } from './webhooks/endpoint-parts';
import { ENDPOINT_PAGE_ROUTES, WEBHOOK_ROUTES } from './webhooks/endpoints';

export const ROUTES: readonly Route[] = [
  ...OVERVIEW_ROUTES,
  ...BALANCE_ROUTES,
  ...listRoutes(PAYMENTS),
  ...listRoutes(REFUNDS),
  ...listRoutes(PAYOUTS),
  ...RESOURCE_ROUTES,
  ...DISPUTE_ROUTES,
  ...[...CRYPTO_ROUTES, ...WALLET_ROUTES].map((route) => ({ ...route, crypto: true as const })),
  ...WEBHOOK_ROUTES,
  ...ENDPOINT_PAGE_ROUTES,
  ...SECRET_ROUTES,
  ...DELIVERY_ROUTES,
  ...SEND_ROUTES,
  ...LOG_ROUTES,
  ...ACCESS_ROUTES,
  ...BRAND_ROUTES,
  GETTING_STARTED_ROUTE,
  ...PROFILE_ROUTES,
  ...SECOND_FACTOR_ROUTES,
];

/**
 * Pages work without JavaScript and allow nothing inline and no frame; every form carries the
 * session's token.
 * @see docs/dashboard.md#the-dashboard
 */
export function createDashboard(deps: DashboardDeps): Router {
  const router = new Router({ sensitive: true });
  router.use(pageHeaders(deps.publicUrl, ["'self'"]));
  const css = addAsset(router, '/dashboard/assets/dashboard.css', 'text/css', DASHBOARD_CSS);
  const js = addAsset(router, '/dashboard/assets/dashboard.js', 'text/javascript', DASHBOARD_JS);
  const dashboard: Dashboard = {
    ...deps,
    assets: { css, js },
    cookie: sessionCookie(deps.publicUrl),
    device: deviceCookie(deps.publicUrl, deps.keys.fingerprint),
    visits: createVisitLimits(deps.visitCostsMax ?? VISIT_COSTS_MAX),
    limitSignIns: createSignInLanes(),
  };
  router.use(async (ctx, next) => {
    try {
      await next();
    } catch (err) {
      dashboard.log.error({ err, route: 'dashboard' }, 'a page of the dashboard failed');
      ctx.set('Retry-After', '5');
      sendNotice(ctx, dashboard, 'trouble');
    }
  });
  router.get('/dashboard', (ctx) => seeOther(ctx, HOME_PATH));
  addSignIn(router, dashboard);
  addNewPassword(router, dashboard);
  addSignedIn(router, dashboard, ROUTES);
  router.all('/dashboard/*rest', (ctx) => sendNotice(ctx, dashboard, 'not_found'));
  return router;
}
