import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { secretCookie } from '../../pages/browser';
import type { DashboardDeps } from './route';
import type { VisitLimits } from './visit-limits';

export interface Dashboard extends DashboardDeps {
  assets: { css: string; js: string };
  cookie: ReturnType<typeof sessionCookie>;
  device: ReturnType<typeof deviceCookie>;
  limitVisit: VisitLimits;
}

export const HOME_PATH = '/dashboard/sandbox/overview';
/** Step of sign-in that replaces a password which somebody else set. */
export const NEW_PASSWORD_PATH = '/dashboard/sign-in/password';

export function sendHtml(ctx: Context, html: string, status = 200): void {
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = html;
}

/** Creates the session's cookie. On https its name forbids other hosts to set it. */
export function sessionCookie(publicUrl: string) {
  return secretCookie(publicUrl, { prefix: '__Host-', name: 'dashboard', attributes: 'Path=/' });
}

const A_YEAR_S = 365 * 86_400;

/** Creates the cookie by which a browser that has signed in is known. */
export function deviceCookie(publicUrl: string) {
  return secretCookie(publicUrl, {
    prefix: '__Secure-',
    name: 'dashboard_device',
    attributes: `Path=/dashboard; Max-Age=${A_YEAR_S}`,
  });
}

/** Derives the form token of a session, which reveals nothing about its secret. */
export function csrfToken(secret: string): string {
  return createHash('sha256').update(`csrf:${secret}`).digest('base64url');
}

export function isCsrfToken(token: string, secret: string): boolean {
  const expected = Buffer.from(csrfToken(secret));
  const actual = Buffer.from(token);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
