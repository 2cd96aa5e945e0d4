import type { Context, Middleware } from 'koa';

interface FormTargets {
  urls: readonly (string | null)[];
  livemode: boolean;
}

/** Forces TLS for this host, not for its subdomains. */
export const HSTS = { 'Strict-Transport-Security': 'max-age=31536000' };

const EVERYWHERE = { 'X-Frame-Options': 'DENY', 'X-Content-Type-Options': 'nosniff' };

export const NOTHING_ALLOWED = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  ...EVERYWHERE,
};

export const ISOLATED = {
  ...EVERYWHERE,
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=()',
};

/**
 * @param publicUrl https turns HSTS on
 * @param formAction targets of the forms; customers' pages lead to banks and shops
 */
export function pageHeaders(publicUrl: string, formAction = ["'self'", 'https:']): Middleware {
  const https = publicUrl.startsWith('https:');
  const policy = contentSecurityPolicy(formAction);
  return async (ctx, next) => {
    ctx.set({
      'Content-Security-Policy': policy,
      ...ISOLATED,
      'Cache-Control': 'no-store',
    });
    if (https) ctx.set(HSTS);
    await next();
  };
}

/**
 * Allows any https address: Chrome applies `form-action` to every redirect, and those of banks and
 * shops are unknown.
 */
export function allowForms(ctx: Context, { urls, livemode }: FormTargets): void {
  const knownUrls = urls.filter((url) => url !== null);
  const origins = knownUrls
    .map((url) => (URL.canParse(url) ? new URL(url).origin : ''))
    .filter((origin) => PLAIN_ORIGIN.test(origin));
  // The http address of a local sandbox bank may be known only after this page is sent.
  const pending = !livemode && knownUrls.length < urls.length ? ['http:'] : [];
  const policy = contentSecurityPolicy(["'self'", 'https:', ...new Set(origins), ...pending]);
  ctx.set('Content-Security-Policy', policy);
}

/** Other characters could add words to the policy. */
const PLAIN_ORIGIN = /^https?:\/\/([\w.-]+|\[[\da-f:.]+\])(:\d+)?$/;

function contentSecurityPolicy(formAction: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    `form-action ${formAction.join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');
}

/**
 * Detects a POST from another site's page. A browser without these headers is allowed, since the
 * secret in the address authorizes.
 */
export function isForeignPost(ctx: Context, publicUrl: string): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  if (site !== '') return site !== 'same-origin' && site !== 'none';
  // No-referrer pages send `null` where Sec-Fetch-Site is unknown.
  const origin = ctx.get('Origin');
  return origin !== '' && origin !== 'null' && origin !== new URL(publicUrl).origin;
}

export function seeOther(ctx: Context, url: string): void {
  ctx.status = 303;
  ctx.redirect(url);
}
