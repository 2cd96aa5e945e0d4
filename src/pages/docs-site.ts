import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import Router from '@koa/router';
import type { Context } from 'koa';
import { PACKAGE_ROOT } from '../base/program';
import { HSTS, ISOLATED } from './security';

const BUILT = join(PACKAGE_ROOT, 'dist/site');
const BASE = '/docs';
const HASHED = '/docs/assets/';
const CACHED_FOREVER = 'public, max-age=31536000, immutable';
const CHECKED_EACH_TIME = 'no-cache';
const NOT_BUILT =
  'This installation has no documentation site. `npm run build` in a checkout makes one.\n';

interface SiteFile {
  body: Buffer;
  type: string;
  etag: string;
  policy: string;
}

/** Serves only files that were there at the start, so no path leads out of the site. */
export function createDocsSite({
  publicUrl,
  folder = BUILT,
}: {
  publicUrl: string;
  folder?: string;
}): Router {
  const paths = listPaths(folder);
  const cache = new Map<string, Promise<SiteFile>>();
  const load = (path: string): Promise<SiteFile> => {
    const loading = cache.get(path) ?? readSiteFile(path);
    cache.set(path, loading);
    loading.catch(() => cache.delete(path));
    return loading;
  };
  const serve = async (ctx: Context): Promise<void> => {
    if (publicUrl.startsWith('https:')) ctx.set(HSTS);
    const [path, notFound] = [paths.get(ctx.path), paths.get(`${BASE}/404`)];
    if (notFound === undefined) {
      ctx.status = 404;
      ctx.type = 'text/plain';
      ctx.body = NOT_BUILT;
      return;
    }
    const { body, type, etag, policy } = await load(path ?? notFound);
    ctx.status = path === undefined ? 404 : 200;
    ctx.set({
      'Content-Security-Policy': policy,
      ...ISOLATED,
      'Cache-Control': ctx.path.startsWith(HASHED) ? CACHED_FOREVER : CHECKED_EACH_TIME,
    });
    if (path === undefined) ctx.set('Cache-Control', 'no-store');
    ctx.type = type;
    ctx.etag = etag;
    if (path !== undefined && ctx.fresh) ctx.status = 304;
    else ctx.body = body;
  };
  const router = new Router({ strict: true, sensitive: true });
  router.get(BASE, (ctx) => ctx.redirect(`${BASE}/`));
  router.get(`${BASE}/{*path}`, serve);
  return router;
}

function listPaths(folder: string): Map<string, string> {
  const paths = new Map<string, string>();
  // Without a built site, each answer says so.
  if (!existsSync(folder)) return paths;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const url = `${BASE}/${relative(folder, file).split(sep).join('/')}`;
    paths.set(url, file);
    paths.set(url.replace(/(?:^|(?<=[/]))index[.]html$|[.]html$/, ''), file);
  }
  return paths;
}

async function readSiteFile(path: string): Promise<SiteFile> {
  const body = await readFile(path);
  const ending = extname(path);
  const inline = ending === '.html' ? [...body.toString().matchAll(INLINE_SCRIPT)] : [];
  const scripts = inline.map(([, code = '']) => `'sha256-${hash(code)}'`);
  return {
    body,
    // Browsers name the encoding of scripts and texts by this header alone.
    type: ending === '.txt' ? 'text/plain; charset=utf-8' : ending,
    etag: hash(body),
    policy: [
      "default-src 'none'",
      ["script-src 'self'", ...scripts].join(' '),
      `style-src 'self' ${STILL}`,
      "img-src 'self' data:",
      "font-src 'self'",
      "connect-src 'self'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join('; '),
  };
}

const INLINE_SCRIPT = /<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g;

function hash(content: Buffer | string): string {
  return createHash('sha256').update(content).digest('base64');
}

/** Theme's style that stops transitions while colors change. */
const STILL = "'sha256-skqujXORqzxt1aE0NNXxujEanPTX6raoqSscTV/Ww/Y='";
