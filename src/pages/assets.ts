import { createHash } from 'node:crypto';
import type { Context } from 'koa';

export interface Asset {
  /** Address with the content's hash, so that it is cached forever. */
  href: string;
  serve: (ctx: Context) => void;
}

/** Creates an asset from text in the source, since the compiler copies no other files. */
export function createAsset(
  path: string,
  type: 'text/css' | 'text/javascript',
  body: string,
): Asset {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 16);
  return {
    href: `${path}?v=${hash}`,
    serve: (ctx) => {
      const isPinned = ctx.query['v'] === hash;
      ctx.set('Cache-Control', isPinned ? 'public, max-age=31536000, immutable' : 'no-cache');
      ctx.set('ETag', `"${hash}"`);
      ctx.type = `${type}; charset=utf-8`;
      ctx.status = 200;
      if (ctx.fresh) ctx.status = 304;
      else ctx.body = body;
    },
  };
}
