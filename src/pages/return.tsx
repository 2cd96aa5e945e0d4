import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { PaymentDocument } from '../service/payment-pages';
import type { PayPages } from './answers';
import { onwardUrl } from './page-access';
import { returnPage } from './pay-views';
import { seeOther } from './security';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Serves the bank's return address. It contains no secret: the browser's cookie authenticates, and
 * another browser does not learn whether the payment exists.
 */
export function addReturnRoutes(router: Router, pages: PayPages): void {
  router.get('/pay/return/:payment_id', async (ctx) => {
    const payment = await findOwnPayment(ctx, pages);
    if (payment === null) return pages.notice(ctx, 'done');
    const onward = onwardUrl(payment);
    if (onward !== null) return seeOther(ctx, onward);
    await pages.show(ctx, payment, (props) => returnPage(props, `/pay/return/${payment._id}`));
  });

  router.get('/pay/return/:payment_id/status', async (ctx) => {
    const payment = await findOwnPayment(ctx, pages);
    ctx.status = payment === null ? 404 : 200;
    ctx.body = { status: payment?.status ?? null, next: payment && onwardUrl(payment) };
  });

  router.post('/pay/return/:payment_id/cancel', async (ctx) => {
    const payment = await findOwnPayment(ctx, pages);
    if (payment === null) return pages.notice(ctx, 'done');
    const onward = onwardUrl(payment);
    if (onward !== null) return seeOther(ctx, onward);
    await pages.cancel(ctx, payment);
  });
}

async function findOwnPayment(
  ctx: RouterContext,
  { payments, browser }: PayPages,
): Promise<PaymentDocument | null> {
  const { payment_id: id = '' } = ctx.params;
  const hash = browser.hash(ctx);
  if (hash === null || !UUID.test(id)) return null;
  const payment = await payments.get(id);
  return payment?.browser_hash === hash ? payment : null;
}
