import type { Context, Middleware } from 'koa';

/** Targets that a page's forms may lead to. */
export interface FormTargets {
  /** Stored URLs that a form's answer redirects to; null where one isn't known yet. */
  urls: readonly (string | null)[];
  livemode: boolean;
}

/** Header by which browsers come back by TLS only; other names of the domain are their owner's affair. */
export const HSTS = { 'Strict-Transport-Security': 'max-age=31536000' };

/**
 * Sets the headers of every page that a person sees: never framed, never cached, no script but our
 * own.
 * @param publicUrl the pages' own base; https turns HSTS on
 * @param formAction targets of the forms; customers' pages lead on to banks and shops
 */
export function pageHeaders(publicUrl: string, formAction = ["'self'", 'https:']): Middleware {
  const https = publicUrl.startsWith('https:');
  const policy = contentSecurityPolicy(formAction);
  return async (ctx, next) => {
    ctx.set({
      'Content-Security-Policy': policy,
      'X-Frame-Options': 'DENY',
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=()',
      'Cache-Control': 'no-store',
    });
    if (https) ctx.set(HSTS);
    await next();
  };
}

/** Lets the forms of this page lead where they must, and nowhere over plain http besides. */
export function allowForms(ctx: Context, targets: FormTargets): void {
  ctx.set('Content-Security-Policy', contentSecurityPolicy(buildFormAction(targets)));
}

/**
 * Lists targets of forms. Chrome applies `form-action` to every redirect that follows a form. Banks
 * and shops redirect on to addresses that nobody can list, so any https address is allowed besides
 * those we know.
 */
function buildFormAction({ urls, livemode }: FormTargets): string[] {
  const knownUrls = urls.filter((url) => url !== null);
  const origins = [...new Set(knownUrls.flatMap(getOrigins))];
  // A sandbox bank on this machine speaks http, and its address may become known only after this
  // page is sent.
  const pending = !livemode && knownUrls.length < urls.length ? ['http:'] : [];
  return ["'self'", 'https:', ...origins, ...pending];
}

/** Origin of a host written as names and addresses are; any other could add words to the policy. */
const PLAIN_ORIGIN = /^https?:\/\/([\w.-]+|\[[\da-f:.]+\])(:\d+)?$/;

function getOrigins(url: string): string[] {
  const origin = URL.canParse(url) ? new URL(url).origin : '';
  return PLAIN_ORIGIN.test(origin) ? [origin] : [];
}

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
