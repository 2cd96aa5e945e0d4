import { createHash } from 'node:crypto';
import type Router from '@koa/router';
import type { Context } from 'koa';
import type { PaymentPages } from '../service/money/payments';
import { accentCss } from './accent';

/** @returns address that changes with the content */
export function addAsset(
  router: Router,
  path: string,
  type: 'text/css' | 'text/javascript',
  body: string,
): string {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 16);
  router.get(path, (ctx) => {
    const isPinned = ctx.query['v'] === hash;
    ctx.set('Cache-Control', isPinned ? 'public, max-age=31536000, immutable' : 'no-cache');
    ctx.set('ETag', `"${hash}"`);
    ctx.type = `${type}; charset=utf-8`;
    ctx.status = 200;
    if (ctx.fresh) ctx.status = 304;
    else ctx.body = body;
  });
  return `${path}?v=${hash}`;
}

const FOREVER = 'public, max-age=31536000, immutable';

/**
 * Serves a brand under addresses that name its content, so that browsers keep it, and not its
 * merchant.
 * @see docs/dashboard.md#brand
 */
export function addBrandRoutes(router: Router, { readLogo }: Pick<PaymentPages, 'readLogo'>): void {
  router.get('/pay/accents/:color', (ctx) => {
    const [, digits] = /^([0-9a-f]{6})[.]css$/.exec(ctx.params['color'] ?? '') ?? [];
    if (digits === undefined) return;
    sendForever(ctx, 'text/css; charset=utf-8', accentCss(`#${digits}`));
  });

  router.get('/pay/logos/:hash', async (ctx) => {
    const [, hash] = /^([0-9a-f]{32})$/.exec(ctx.params['hash'] ?? '') ?? [];
    const logo = hash === undefined ? null : await readLogo(hash);
    if (logo !== null) sendForever(ctx, logo.type, logo.image);
  });
}

function sendForever(ctx: Context, type: string, body: string | Buffer): void {
  ctx.set('Cache-Control', FOREVER);
  ctx.type = type;
  ctx.body = body;
}

export function accentPath(accent: string): string {
  return `/pay/accents/${accent.slice(1)}.css`;
}

export function logoPath(hash: string): string {
  return `/pay/logos/${hash}`;
}
