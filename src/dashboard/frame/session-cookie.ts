import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { SECRET } from '../../pages/browser';

/** Session's cookie. On https its name forbids that another host sets it. */
export function sessionCookie(publicUrl: string) {
  const secure = publicUrl.startsWith('https:');
  const name = secure ? '__Host-dashboard' : 'dashboard';
  const attributes = `Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
  return {
    /** Secret of this browser; null when it has none. */
    read: (ctx: Context): string | null => {
      const value = ctx.cookies.get(name);
      return value !== undefined && SECRET.test(value) ? value : null;
    },
    write: (ctx: Context, secret: string): void => {
      // The header is written here, since the library refuses `Secure` cookies behind a proxy that
      // ends TLS.
      ctx.append('Set-Cookie', `${name}=${secret}; ${attributes}`);
    },
    clear: (ctx: Context): void => {
      ctx.append('Set-Cookie', `${name}=; ${attributes}; Max-Age=0`);
    },
  };
}

/** Token for the forms of the browser that holds `secret`; it reveals nothing about the secret. */
export function csrfToken(secret: string): string {
  return createHash('sha256').update(`csrf:${secret}`).digest('base64url');
}

export function isCsrfToken(token: string, secret: string): boolean {
  const expected = Buffer.from(csrfToken(secret));
  const actual = Buffer.from(token);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
