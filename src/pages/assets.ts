import { createHash } from 'node:crypto';
import type Router from '@koa/router';

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
