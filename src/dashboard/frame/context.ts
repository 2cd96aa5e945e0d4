import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { createSignedSecret, isSignedSecret } from '../../encryption/signed-secret';
import { hashSecret, secretCookie } from '../../pages/browser';
import type { SignInLanes } from '../../service/merchants/team/sign-in';
import type { DashboardDeps } from './route';
import type { VisitLimits } from './visit-limits';

export interface Dashboard extends DashboardDeps {
  assets: { css: string; js: string };
  cookie: ReturnType<typeof sessionCookie>;
  device: ReturnType<typeof deviceCookie>;
  visits: VisitLimits;
  limitSignIns: SignInLanes;
}

export const HOME_PATH = '/dashboard/sandbox/overview';
export const NEW_PASSWORD_PATH = '/dashboard/sign-in/password';

export function sendHtml(ctx: Context, html: string, status = 200): void {
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = html;
}

/** On https the cookie's name forbids other hosts to set it. */
export function sessionCookie(publicUrl: string) {
  return secretCookie(publicUrl, { prefix: '__Host-', name: 'dashboard', attributes: 'Path=/' });
}

const A_YEAR_S = 365 * 86_400;
const DEVICE_USE = 'dashboard device';

/**
 * Cookie of a browser that has signed in. Its secret is signed, so that a flood of invented ones
 * costs no look-up.
 */
export function deviceCookie(publicUrl: string, key: Buffer) {
  const cookie = secretCookie(publicUrl, {
    prefix: '__Secure-',
    name: 'dashboard_device',
    attributes: `Path=/dashboard; Max-Age=${A_YEAR_S}`,
  });
  const readSigned = (ctx: Context): string | null => {
    const secret = cookie.read(ctx);
    return secret !== null && isSignedSecret(key, DEVICE_USE, secret) ? secret : null;
  };
  return {
    ...cookie,
    signedHash: (ctx: Context): string | null => {
      const secret = readSigned(ctx);
      return secret === null ? null : hashSecret(secret);
    },
    readOrSign: (ctx: Context): string => readSigned(ctx) ?? createSignedSecret(key, DEVICE_USE),
  };
}

export function csrfToken(secret: string): string {
  return createHash('sha256').update(`csrf:${secret}`).digest('base64url');
}

export function isCsrfToken(token: string, secret: string): boolean {
  const expected = Buffer.from(csrfToken(secret));
  const actual = Buffer.from(token);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
