import Router, { type RouterMiddleware } from '@koa/router';
import { addAsset } from '../pages/assets';
import { pageHeaders, seeOther } from '../pages/security';
import type { DashboardDeps } from './deps';
import { type Dashboard, getHomePath } from './frame/context';
import { buildNavigation } from './frame/layout';
import { sendNotice } from './frame/notices';
import { DASHBOARD_JS } from './frame/script';
import { sessionCookie } from './frame/session-cookie';
import { addSignedIn } from './frame/signed-in';
import { DASHBOARD_CSS } from './frame/styles';
import { ROUTES } from './routes';
import { addSignInCode } from './sign-in/code';
import { addInvitation } from './sign-in/invitation';
import { addSignIn } from './sign-in/sign-in';

/**
 * Serves the merchants' dashboard. Every page works without JavaScript, allows nothing inline and
 * no frame, and every form carries the session's token.
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
    navigation: buildNavigation(ROUTES),
  };
  router.use(showErrorPage(dashboard));
  router.get('/dashboard', (ctx) => seeOther(ctx, getHomePath(dashboard)));
  addSignIn(router, dashboard);
  addSignInCode(router, dashboard);
  addInvitation(router, dashboard);
  addSignedIn(router, dashboard, ROUTES);
  router.all('/dashboard/*rest', (ctx) => sendNotice(ctx, dashboard, 'not_found'));
  return router;
}

/** Turns every error into a page, never into JSON or a stack trace. */
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
