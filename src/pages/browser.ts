import { createHash, randomBytes } from 'node:crypto';
import type { Context } from 'koa';

/** Page tokens and browser cookies: 256 bits in base64url. */
export const SECRET = /^[A-Za-z0-9_-]{43}$/;

const A_WEEK_S = 7 * 86_400; // longer than the longest payment is open

export type BrowserCookie = ReturnType<typeof browserCookie>;

/** Hashes page tokens and browser cookies for storage, as hex SHA-256. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/**
 * Creates the cookie that binds a payment's page to one browser. Only its hash is stored.
 * @param publicUrl https makes the cookie `Secure` (`__Host-` would forbid its narrow path)
 */
export function browserCookie(publicUrl: string) {
  const secure = publicUrl.startsWith('https:');
  const name = secure ? '__Secure-pay_browser' : 'pay_browser';
  const attributes = [
    'Path=/pay',
    `Max-Age=${A_WEEK_S}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(secure ? ['Secure'] : []),
  ].join('; ');

  const read = (ctx: Context): string | null => {
    const value = ctx.cookies.get(name);
    return value !== undefined && SECRET.test(value) ? value : null;
  };
  return {
    hash: (ctx: Context): string | null => {
      const value = read(ctx);
      return value === null ? null : hashSecret(value);
    },
    /** Sets the cookie unless the browser has one. @returns its hash */
    bind: (ctx: Context): string => {
      const value = read(ctx) ?? randomBytes(32).toString('base64url');
      // The library refuses `Secure` cookies behind a proxy that ends TLS.
      ctx.append('Set-Cookie', `${name}=${value}; ${attributes}`);
      return hashSecret(value);
    },
  };
}
