import Router, { type RouterContext } from '@koa/router';
import type { Context } from 'koa';
import type { TransferInstructions } from '../domain/payment/transfer-instructions';
import type { PaymentDocument } from '../service/money/payments';
import { type PayPageDeps, type PayPages, shareAnswers } from './answers';
import { addAsset, addBrandRoutes } from './assets';
import { hashSecret, SECRET } from './browser';
import { addCryptoRoutes } from './crypto';
import { formatDecimalIn, formatMoneyIn } from './language';
import { renderPage, Shop } from './layout';
import {
  bankUrl,
  Cancel,
  getPageAccess,
  onwardUrl,
  openingPage,
  outcomePage,
  type PageAccess,
  PayBy,
  type PayPageProps,
  payPage,
  returnPage,
  shell,
} from './pay-views';
import { PAY_JS } from './script';
import { isForeignPost, pageHeaders, seeOther } from './security';
import { PAY_CSS } from './styles';
import type { Texts } from './texts/texts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Reads no request body and redirects only to stored URLs.
 * @see docs/api.md#send-the-customer-to-redirect_url
 */
export function createPayPages(deps: PayPageDeps): Router {
  const router = new Router();
  router.use(pageHeaders(deps.publicUrl));
  const css = addAsset(router, '/pay/assets/pay.css', 'text/css', PAY_CSS);
  const js = addAsset(router, '/pay/assets/pay.js', 'text/javascript', PAY_JS);
  addBrandRoutes(router, deps);
  const pages = shareAnswers(deps, { css, js });
  router.use(async (ctx, next) => {
    try {
      if (ctx.method === 'POST' && isForeignPost(ctx, pages.publicUrl)) {
        pages.notice(ctx, 'foreign');
        return;
      }
      await next();
    } catch (err) {
      pages.log.error({ err, route: 'pay' }, 'a customer page failed');
      ctx.set('Retry-After', '5');
      pages.notice(ctx, 'trouble');
    }
  });
  addReturnRoutes(router, pages);
  addCryptoRoutes(router, pages);
  addTokenRoutes(router, pages);
  return router;
}

function addTokenRoutes(router: Router, pages: PayPages): void {
  const add = (method: 'get' | 'post', suffix: string, answer: AnswerPayment) =>
    router[method](`/pay/:token${suffix}`, async (ctx) => {
      const { token = '' } = ctx.params;
      const payment = await admit(ctx, pages, token, method === 'post');
      if (payment !== null) await answer(ctx, payment, `/pay/${token}`);
    });

  add('get', '', async (ctx, payment, path) => {
    // Set before the first POST, so that a repeated POST comes from the same browser even when its
    // answer was lost.
    if (ctx.method === 'GET') pages.browser.bind(ctx);
    await pages.show(ctx, payment, (props) => payPage(props, path));
  });
  add('post', '', (ctx, payment, path) => seeOther(ctx, stepUrl(payment, path) ?? `${path}/wait`));
  add('get', '/wait', async (ctx, payment, path) => {
    if (payment.browser_hash === null) return seeOther(ctx, path);
    if (payment.instructions !== undefined) return seeOther(ctx, `${path}/transfer`);
    await pages.show(ctx, payment, (props) => openingPage(props, path));
  });
  add('get', '/status', (ctx, { status, browser_hash, ...payment }, path) => {
    ctx.body = { status, next: browser_hash && stepUrl(payment, path) };
  });
  add('get', '/transfer', async (ctx, payment, path) => {
    const { browser_hash, instructions } = payment;
    if (browser_hash === null || instructions === undefined) return seeOther(ctx, path);
    await pages.show(ctx, payment, (props) => transferPage(props, instructions, path));
  });
  add('get', '/transfer/status', (ctx, { status }) => {
    ctx.body = { status, next: null };
  });
  add('post', '/cancel', (ctx, payment) => pages.cancel(ctx, payment));
}

function stepUrl(
  payment: Pick<PaymentDocument, 'session_url' | 'instructions' | 'livemode'>,
  path: string,
): string | null {
  return payment.instructions === undefined ? bankUrl(payment) : `${path}/transfer`;
}

type AnswerPayment = (
  ctx: RouterContext,
  payment: PaymentDocument,
  path: string,
) => Promise<void> | void;

/**
 * Answers itself where this browser may not use the payment. `opens` first binds the page to this
 * browser; of concurrent ones, one wins.
 */
async function admit(ctx: Context, pages: PayPages, token: string, opens: boolean) {
  const payment = SECRET.test(token) ? await pages.payments.byToken(hashSecret(token)) : null;
  if (payment === null) {
    pages.notice(ctx, 'unknown');
    return null;
  }
  const browserHash = pages.browser.hash(ctx);
  const now = await pages.getNow(payment);
  const access = getPageAccess(payment, browserHash, now);
  if (access === 'open' && !opens) return payment;
  if (access === 'open') {
    const newHash = pages.browser.bind(ctx);
    const { token_hash } = payment;
    const openedPayment = await pages.payments.openPage(token_hash, newHash, now.toISOString());
    if (openedPayment !== null) return openedPayment;
    const current = (await pages.payments.byToken(token_hash)) ?? payment;
    await refuse(ctx, pages, current, getPageAccess(current, newHash, await pages.getNow(current)));
    return null;
  }
  await refuse(ctx, pages, payment, access);
  return null;
}

async function refuse(ctx: Context, pages: PayPages, payment: PaymentDocument, access: PageAccess) {
  if (access === 'outcome') {
    return await pages.show(ctx, payment, (props) => outcomePage(props, onwardUrl(payment)));
  }
  // `open` is left only where the time ran out during the race.
  const name = access === 'open' ? 'expired' : access;
  const isBound = name === 'expired' && payment.browser_hash !== null;
  const onward = isBound ? payment.error_url : null;
  pages.notice(ctx, name, { country: payment.country, onward });
}

/** Return address contains no secret: the browser's cookie authenticates. */
function addReturnRoutes(router: Router, pages: PayPages): void {
  const add = (method: 'get' | 'post', suffix: string, answer: AnswerPayment) =>
    router[method](`/pay/return/:payment_id${suffix}`, async (ctx) => {
      const payment = await findOwnPayment(ctx, pages);
      if (payment === null) return pages.notice(ctx, 'done');
      const onward = onwardUrl(payment);
      if (onward !== null) return seeOther(ctx, onward);
      await answer(ctx, payment, `/pay/return/${payment._id}`);
    });

  add('get', '', (ctx, payment, path) =>
    pages.show(ctx, payment, (props) => returnPage(props, path)),
  );
  add('post', '/cancel', (ctx, payment) => pages.cancel(ctx, payment));
  router.get('/pay/return/:payment_id/status', async (ctx) => {
    const payment = await findOwnPayment(ctx, pages);
    ctx.status = payment === null ? 404 : 200;
    ctx.body = { status: payment?.status ?? null, next: payment && onwardUrl(payment) };
  });
}

async function findOwnPayment(ctx: RouterContext, { payments, browser }: PayPages) {
  const { payment_id: id = '' } = ctx.params;
  const hash = browser.hash(ctx);
  if (hash === null || !UUID.test(id)) return null;
  const payment = await payments.get(id);
  return payment?.browser_hash === hash ? payment : null;
}

/** Long interval, since a transfer takes hours. */
const LOOK_AGAIN_MS = 15_000;
const RELOAD_S = 60;

function transferPage(
  props: PayPageProps,
  instructions: TransferInstructions,
  path: string,
): string {
  const { payment, brand, language } = props;
  const { pay, transfer } = language.texts;
  const { iban, account_holder, bic, reference } = instructions;
  const { amount, currency } = payment;
  const field = { texts: language.texts };
  return renderPage({
    title: transfer.title,
    ...shell(props),
    reloadAfter: RELOAD_S,
    children: (
      <div class="live" data-poll={`${path}/transfer/status`} data-pause={LOOK_AGAIN_MS}>
        <Shop {...brand} />
        <div class="stack">
          <h1>{transfer.title}</h1>
          <p class="muted">{transfer.confirmed}</p>
        </div>
        <dl class="fields">
          <Field
            id="amount"
            name={pay.amount}
            value={formatDecimalIn(language, amount, currency)}
            shown={formatMoneyIn(language, amount, currency)}
            {...field}
          />
          <Field id="holder" name={transfer.holder} value={account_holder} {...field} />
          <Field id="iban" name="IBAN" value={iban} shown={group(iban)} {...field} />
          {bic !== null && <Field id="bic" name="BIC" value={bic} {...field} />}
          <Field
            id="reference"
            name={transfer.reference}
            value={reference}
            shown={group(reference)}
            {...field}
          />
        </dl>
        <p class="callout small">{transfer.exactly}</p>
        <dl>
          <PayBy {...props} />
        </dl>
        <p class="muted small">{transfer.sent}</p>
        <Cancel action={`${path}/cancel`} texts={pay} />
        <p class="said" role="status" data-said />
      </div>
    ),
  });
}

interface FieldProps {
  id: string;
  name: string;
  value: string;
  shown?: string;
  texts: Texts;
}

function Field({ id, name, value, shown = value, texts: { transfer, crypto } }: FieldProps) {
  return (
    <div>
      <dt class="small">{name}</dt>
      <dd>
        <span id={id} class="value all" data-value={value}>
          {shown}
        </span>
        <button
          class="plain slim"
          type="button"
          aria-label={`${transfer.copy}: ${name}`}
          data-copy={id}
          data-copied={crypto.copied}
          data-said-then={`${crypto.copied}: ${name}`}
          hidden
        >
          {transfer.copy}
        </button>
      </dd>
    </div>
  );
}

function group(text: string): string {
  return text.replace(/(.{4})(?=.)/g, '$1 ');
}
