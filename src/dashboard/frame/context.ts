import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { secretCookie } from '../../pages/browser';
import type { DashboardDeps } from './route';

export interface Dashboard extends DashboardDeps {
  assets: { css: string; js: string };
  cookie: ReturnType<typeof sessionCookie>;
}

export const HOME_PATH = '/dashboard/sandbox/overview';

export function sendHtml(ctx: Context, html: string, status = 200): void {
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = html;
}

/** Creates the session's cookie. On https its name forbids other hosts to set it. */
export function sessionCookie(publicUrl: string) {
  return secretCookie(publicUrl, { prefix: '__Host-', name: 'dashboard', attributes: 'Path=/' });
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
