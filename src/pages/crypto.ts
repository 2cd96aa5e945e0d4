import { createHash } from 'node:crypto';
import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { PayPages } from './answers';
import { addAsset } from './assets';
import { hashSecret, SECRET } from './browser';
import { type CryptoPagePayment, getStage } from './crypto-stage';
import { cryptoPage } from './crypto-views';
import { CRYPTO_JS } from './script';
import { CRYPTO_CSS } from './styles';

/**
 * Binds the page to no browser, since the wallet may be on another device.
 * @see docs/api.md#the-payers-page
 */
export function addCryptoRoutes(router: Router, pages: PayPages): void {
  const css = addAsset(router, '/pay/assets/crypto.css', 'text/css', CRYPTO_CSS);
  const js = addAsset(router, '/pay/assets/crypto.js', 'text/javascript', CRYPTO_JS);

  router.get('/pay/crypto/:token', async (ctx) => {
    const payment = await findPayment(ctx, pages);
    if (payment === null) return pages.notice(ctx, 'unknown');
    const now = await pages.getNow(payment);
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = cryptoPage({
      payment,
      brand: await pages.getBrand(payment),
      assets: { css, js },
      language: pages.chooseLanguage(ctx),
      now,
      poll: `/pay/crypto/${ctx.params['token']}/status`,
      state: hashState(payment, now),
    });
  });

  router.get('/pay/crypto/:token/status', async (ctx) => {
    const payment = await findPayment(ctx, pages);
    ctx.status = payment === null ? 404 : 200;
    ctx.body = payment === null ? NONE : describeState(payment, await pages.getNow(payment));
  });
}

const NONE = { status: null, state: null };

function describeState(payment: CryptoPagePayment, now: Date) {
  const { secondsLeft } = getStage(payment, now);
  const seconds_left = Math.floor(secondsLeft);
  return { status: payment.status, state: hashState(payment, now), seconds_left };
}

async function findPayment({ params }: RouterContext, { cryptoPayments }: PayPages) {
  const { token = '' } = params;
  return SECRET.test(token) ? await cryptoPayments.byToken(hashSecret(token)) : null;
}

function hashState(payment: CryptoPagePayment, now: Date): string {
  const { status, amount_received, deposits } = payment;
  const { name } = getStage(payment, now);
  const text = JSON.stringify([name, status, amount_received, deposits]);
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}
