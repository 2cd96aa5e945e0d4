import type { Context, Middleware } from 'koa';

/** Targets that a page's forms may lead to. */
export interface FormTargets {
  /** Stored URLs that a form's answer redirects to; null where one isn't known yet. */
  urls: readonly (string | null)[];
  livemode: boolean;
}

const HSTS = 'max-age=31536000; includeSubDomains';

/**
 * Sets the headers of every page that a customer sees: never framed, never cached, no script but
 * our own.
 * @param publicUrl the pages' own base; https turns HSTS on
 */
export function pageHeaders(publicUrl: string): Middleware {
  const https = publicUrl.startsWith('https:');
  return async (ctx, next) => {
    ctx.set({
      'Content-Security-Policy': contentSecurityPolicy({ urls: [], livemode: true }),
      'X-Frame-Options': 'DENY',
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=()',
      'Cache-Control': 'no-store',
    });
    if (https) ctx.set('Strict-Transport-Security', HSTS);
    await next();
  };
}

/** Lets the forms of this page lead where they must, and nowhere over plain http besides. */
export function allowForms(ctx: Context, targets: FormTargets): void {
  ctx.set('Content-Security-Policy', contentSecurityPolicy(targets));
}

/**
 * Builds the policy. Chrome applies `form-action` to every redirect that follows a form. Banks and
 * shops redirect on to addresses that nobody can list, so any https address is allowed besides
 * those we know.
 */
function contentSecurityPolicy({ urls, livemode }: FormTargets): string {
  const known = urls.filter((url) => url !== null);
  const origins = [...new Set(known.map((url) => new URL(url).origin))];
  // A sandbox bank on this machine speaks http, and its address may become known only after this
  // page is sent.
  const pending = !livemode && known.length < urls.length ? ['http:'] : [];
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    `form-action ${["'self'", 'https:', ...origins, ...pending].join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');
}

/**
 * Whether a POST was sent by another site's page. A browser that doesn't say is let through, since
 * the secret in the address is what authorises and this check only stops a borrowed browser.
 */
export function isForeignPost(ctx: Context, publicUrl: string): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  if (site !== '') return site !== 'same-origin' && site !== 'none';
  // Our own no-referrer pages send `null` where Sec-Fetch-Site is unknown.
  const origin = ctx.get('Origin');
  return origin !== '' && origin !== 'null' && origin !== new URL(publicUrl).origin;
}

/** Redirects by 303, so that the browser goes there with GET whatever the method was. */
export function seeOther(ctx: Context, url: string): void {
  ctx.status = 303;
  ctx.redirect(url);
}
