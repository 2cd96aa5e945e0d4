import Router from '@koa/router';
import Koa from 'koa';
import type { Logger } from '../../src/base/log';
import { addAsset } from '../../src/pages/assets';
import { isForeignPost, pageHeaders } from '../../src/pages/security';
import { addPayerRoutes, type PayerRouteDeps } from './chain/payer-routes';
import { isTooLarge, showMessage } from './pages';
import { addSessionRoutes, type SessionDeps } from './session-routes';
import { BANK_CSS } from './styles';

export interface BankAppDeps extends SessionDeps {
  chain: PayerRouteDeps;
  publicUrl?: string;
  log: Logger;
}

export function createBankApp(deps: BankAppDeps): Koa {
  const router = new Router();
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  const stylesheet = addAsset(router, '/assets/bank.css', 'text/css', BANK_CSS);
  addSessionRoutes(router, { ...deps, stylesheet });
  addPayerRoutes(router, { ...deps.chain, stylesheet });

  const app = new Koa();
  app.use(pageHeaders(deps.publicUrl ?? 'http://localhost'));
  app.use(async (ctx, next) => {
    const refuse = (status: number, title: string, text: string) =>
      showMessage(ctx, { status, title, text }, { stylesheet });
    try {
      if (ctx.method === 'POST' && isForeignPost(ctx, deps.publicUrl ?? ctx.origin)) {
        return refuse(403, 'That did not come from this page', 'Use the buttons on the page.');
      }
      await next();
      if (ctx.status === 404 && !ctx.body) {
        refuse(404, 'There is nothing here', 'The link may be incomplete.');
      }
    } catch (err) {
      if (isTooLarge(err)) return refuse(413, 'The form is too large', 'Use the form on the page.');
      deps.log.error({ err, path: ctx.routerPath }, 'a bank page failed');
      refuse(503, 'The bank can’t answer right now', 'Please try again in a moment.');
    }
  });
  app.use(router.routes());
  return app;
}
