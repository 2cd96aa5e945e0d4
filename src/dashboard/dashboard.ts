import Router, { type RouterMiddleware } from '@koa/router';
import { createAsset } from '../pages/assets';
import { pageHeaders, seeOther } from '../pages/security';
import { type Dashboard, homeOf } from './context';
import { DATA_CSS } from './data-styles';
import type { DashboardDeps } from './deps';
import { addInvitation } from './invitation';
import { navigationOf } from './navigation';
import { sendNotice } from './notices';
import { ROUTES } from './routes';
import { DASHBOARD_JS } from './script';
import { sessionCookie } from './session';
import { addSignIn } from './sign-in';
import { addSignInCode } from './sign-in-code';
import { addSignedIn } from './signed-in';
import { DASHBOARD_CSS } from './styles';

/**
 * Serves the merchants' dashboard under `/dashboard`. Every page works without JavaScript; nothing
 * inline is allowed, nothing is framed, and every form carries the session's token.
 * @see docs/dashboard.md#the-dashboard
 */
export function createDashboard(deps: DashboardDeps): Router {
  const css = createAsset(
    '/dashboard/assets/dashboard.css',
    'text/css',
    `${DASHBOARD_CSS}${DATA_CSS}`,
  );
  const js = createAsset('/dashboard/assets/dashboard.js', 'text/javascript', DASHBOARD_JS);
  const dashboard: Dashboard = {
    ...deps,
    assets: { css: css.href, js: js.href },
    cookie: sessionCookie(deps.publicUrl),
    navigation: navigationOf(ROUTES),
  };
  const router = new Router({ sensitive: true });
  router.use(pageHeaders(deps.publicUrl, ["'self'"]), answerInWords(dashboard));
  router.get('/dashboard/assets/dashboard.css', (ctx) => css.serve(ctx));
  router.get('/dashboard/assets/dashboard.js', (ctx) => js.serve(ctx));
  router.get('/dashboard', (ctx) => seeOther(ctx, homeOf(dashboard)));
  addSignIn(router, dashboard);
  addSignInCode(router, dashboard);
  addInvitation(router, dashboard);
  addSignedIn(router, dashboard, ROUTES);
  router.all('/dashboard/*rest', (ctx) => sendNotice(ctx, dashboard, 'not_found'));
  return router;
}

/** Answers every error in words; nobody reads JSON or a stack trace. */
function answerInWords(dashboard: Dashboard): RouterMiddleware {
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
