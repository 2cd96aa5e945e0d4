import Router, { type RouterMiddleware } from '@koa/router';
import { addAsset } from '../pages/assets';
import { pageHeaders, seeOther } from '../pages/security';
import { createSignInLanes } from '../service/merchants/team/sign-in';
import { API_KEY_ROUTES } from './account/api-keys';
import { AUDIT_LOG_ROUTE } from './account/audit-log';
import { BRAND_ROUTES } from './account/brand';
import { CLOCK_ROUTE } from './account/clock';
import { GETTING_STARTED_ROUTE } from './account/getting-started';
import { PROFILE_ROUTES } from './account/profile';
import { SESSION_ROUTES } from './account/sessions';
import { TEAM_ROUTES } from './account/team';
import {
  CRYPTO_PAGE_ROUTES,
  CRYPTO_PAYMENTS,
  CRYPTO_SETTLEMENTS,
  CryptoTabs,
} from './crypto/pages';
import { WALLET_ROUTES } from './crypto/wallets';
import { type Dashboard, deviceCookie, HOME_PATH, sessionCookie } from './frame/context';
import { sendNotice } from './frame/notices';
import { PASSKEY_JS } from './frame/passkey-script';
import type { DashboardDeps, Route } from './frame/route';
import { DASHBOARD_JS } from './frame/script';
import { addSignedIn } from './frame/signed-in';
import { DASHBOARD_CSS } from './frame/styles';
import { createVisitLimits, VISIT_COSTS_MAX } from './frame/visit-limits';
import { OVERVIEW_ROUTES } from './overview/overview';
import { REQUEST_ROUTES } from './requests/pages';
import { PAYMENTS, PAYOUTS, REFUNDS } from './resources/kinds';
import { listRoutes } from './resources/list';
import { RESOURCE_ROUTES } from './resources/pages';
import { addInvitation } from './sign-in/invitation';
import { addNewPassword } from './sign-in/new-password';
import { addPasskeySignIn, PASSKEY_ROUTES } from './sign-in/passkeys';
import { SECOND_FACTOR_ROUTES } from './sign-in/second-factor';
import { addSignIn } from './sign-in/sign-in';
import { addSignInCode } from './sign-in/sign-in-code';
import { DELIVERY_ROUTES } from './webhooks/deliveries';
import { ENDPOINT_ROUTES } from './webhooks/endpoint';
import { ENDPOINT_PAGE_ROUTES } from './webhooks/endpoint-page';
import { ENDPOINTS_ROUTES } from './webhooks/endpoints';
import { SECRET_ROUTES } from './webhooks/secret';
import { SEND_FAILED_ROUTES } from './webhooks/send-failed';
import { TEST_ROUTES } from './webhooks/test-panel';

const CRYPTO_ROUTES: readonly Route[] = [
  {
    method: 'get',
    path: '/crypto',
    act: 'view',
    title: 'Crypto',
    handle: async ({ href }) => ({ go: href(CRYPTO_PAYMENTS.path) }),
  },
  ...listRoutes(CRYPTO_PAYMENTS, CryptoTabs),
  ...listRoutes(CRYPTO_SETTLEMENTS, CryptoTabs),
  ...CRYPTO_PAGE_ROUTES,
  ...WALLET_ROUTES,
];

export const ROUTES: readonly Route[] = [
  ...OVERVIEW_ROUTES,
  ...listRoutes(PAYMENTS),
  ...listRoutes(REFUNDS),
  ...listRoutes(PAYOUTS),
  ...RESOURCE_ROUTES,
  ...CRYPTO_ROUTES.map((route) => ({ ...route, crypto: true as const })),
  ...ENDPOINT_ROUTES,
  ...ENDPOINTS_ROUTES,
  ...ENDPOINT_PAGE_ROUTES,
  ...SECRET_ROUTES,
  ...TEST_ROUTES,
  ...DELIVERY_ROUTES,
  ...SEND_FAILED_ROUTES,
  ...REQUEST_ROUTES,
  ...API_KEY_ROUTES,
  ...BRAND_ROUTES,
  ...TEAM_ROUTES,
  AUDIT_LOG_ROUTE,
  GETTING_STARTED_ROUTE,
  CLOCK_ROUTE,
  ...PROFILE_ROUTES,
  ...SESSION_ROUTES,
  ...SECOND_FACTOR_ROUTES,
  ...PASSKEY_ROUTES,
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
  const js = addAsset(
    router,
    '/dashboard/assets/dashboard.js',
    'text/javascript',
    DASHBOARD_JS + PASSKEY_JS,
  );
  const dashboard: Dashboard = {
    ...deps,
    assets: { css, js },
    cookie: sessionCookie(deps.publicUrl),
    device: deviceCookie(deps.publicUrl, deps.keys.fingerprint),
    visits: createVisitLimits(deps.visitCostsMax ?? VISIT_COSTS_MAX),
    limitSignIns: createSignInLanes(),
  };
  router.use(showErrorPage(dashboard));
  router.get('/dashboard', (ctx) => seeOther(ctx, HOME_PATH));
  addSignIn(router, dashboard);
  addSignInCode(router, dashboard);
  addNewPassword(router, dashboard);
  addPasskeySignIn(router, dashboard);
  addInvitation(router, dashboard);
  addSignedIn(router, dashboard, ROUTES);
  router.all('/dashboard/*rest', (ctx) => sendNotice(ctx, dashboard, 'not_found'));
  return router;
}

function showErrorPage(dashboard: Dashboard): RouterMiddleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (err) {
      dashboard.log.error({ err, route: 'dashboard' }, 'a page of the dashboard failed');
      ctx.set('Retry-After', '5');
      sendNotice(ctx, dashboard, 'trouble');
    }
  };
}
