import Router from '@koa/router';
import Koa from 'koa';
import type { Logger } from '../../src/base/log';
import { addAsset } from '../../src/pages/assets';
import { isForeignPost, pageHeaders } from '../../src/pages/security';
import { BASE_CSS } from '../../src/pages/styles';
import { addPayerRoutes, type PayerRouteDeps } from './chain/payer-routes';
import { isTooLarge, showMessage } from './pages';
import { addSessionRoutes, type SessionDeps } from './session-routes';

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

/** Colors that nobody takes for those of the shop's payment page. */
const BANK_CSS = `${BASE_CSS}
:root {
  --accent: #0f6b5c; --accent-strong: #0b5247; --focus: #0f6b5c; --tint: #e6f4f0; --page: #eaf0ee;
}
@media (prefers-color-scheme: dark) {
  :root {
    --accent: #6fd6c0; --accent-strong: #97e6d5; --on-accent: #04241e; --focus: #97e6d5;
    --tint: #12342e; --page: #0a1211; --card: #121c1a;
  }
}
h2 { font-size: 16px; font-weight: 620; }
main > .amount { margin-top: -12px; }
fieldset { border: 0; min-width: 0; display: flex; flex-direction: column; gap: 10px; }
legend { padding: 0 0 12px; }
.choice {
  display: flex; align-items: center; gap: 12px; min-height: 52px; padding: 12px 16px;
  border: 1px solid var(--line); border-radius: 14px; cursor: pointer; font-weight: 550;
}
.choice:hover { border-color: var(--edge); }
.choice:has(:checked) { border-color: var(--accent); background: var(--tint); }
.choice:has(:focus-visible) { outline: 3px solid var(--focus); outline-offset: 3px; }
.choice :focus-visible { outline: none; }
input[type='radio'] { accent-color: var(--accent); width: 20px; height: 20px; margin: 0; }
.field { display: flex; flex-direction: column; gap: 6px; }
.field label { font-weight: 600; }
.field input, .field select {
  width: 100%; min-width: 0; min-height: 52px; padding: 12px 14px; border-radius: 12px;
  border: 1px solid var(--edge); background: var(--card); color: var(--ink); font: inherit;
  font-variant-numeric: tabular-nums;
}
.field input[aria-invalid='true'] { border-color: var(--bad); }
.fault { color: var(--bad); font-weight: 600; }
.values dd { font-variant-numeric: tabular-nums; font-size: 18px; }
.otherwise label { font-weight: 400; color: var(--muted); }
.otherwise { border-top: 1px solid var(--line); padding-top: 24px; }
`;
