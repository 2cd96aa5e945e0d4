import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { SECRET } from '../../pages/browser';

/** Creates the session's cookie. On https its name forbids other hosts to set it. */
export function sessionCookie(publicUrl: string) {
  const secure = publicUrl.startsWith('https:');
  const name = secure ? '__Host-dashboard' : 'dashboard';
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  return {
    read: (ctx: Context): string | null => {
      const value = ctx.cookies.get(name);
      return value !== undefined && SECRET.test(value) ? value : null;
    },
    write: (ctx: Context, secret: string): void => {
      // The library refuses `Secure` cookies behind a proxy that ends TLS.
      ctx.append('Set-Cookie', `${name}=${secret}; ${attributes}`);
    },
    clear: (ctx: Context): void => {
      ctx.append('Set-Cookie', `${name}=; ${attributes}; Max-Age=0`);
    },
  };
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
