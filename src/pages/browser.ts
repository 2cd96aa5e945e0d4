import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';

/** 256 bits in base64url. */
export const SECRET = /^[A-Za-z0-9_-]{43}$/;

const A_WEEK_S = 7 * 86_400; // longer than the longest payment is open

export type BrowserCookie = ReturnType<typeof browserCookie>;

export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

interface CookieSetting {
  prefix: string;
  name: string;
  attributes: string;
}

export function pageCookie(publicUrl: string, { prefix, name, attributes }: CookieSetting) {
  const isSecure = publicUrl.startsWith('https:');
  const fullName = isSecure ? `${prefix}${name}` : name;
  const allAttributes = `${attributes}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  return {
    read: (ctx: Context): string | null => ctx.cookies.get(fullName) ?? null,
    // The library refuses `Secure` cookies behind a proxy that ends TLS.
    append: (ctx: Context, value: string, more = '') =>
      ctx.append('Set-Cookie', `${fullName}=${value}; ${allAttributes}${more}`),
  };
}

export function secretCookie(publicUrl: string, setting: CookieSetting) {
  const { append, ...cookie } = pageCookie(publicUrl, setting);
  const read = (ctx: Context): string | null => {
    const value = cookie.read(ctx);
    return value !== null && SECRET.test(value) ? value : null;
  };
  return {
    read,
    hash: (ctx: Context): string | null => {
      const value = read(ctx);
      return value === null ? null : hashSecret(value);
    },
    write: (ctx: Context, secret: string): void => append(ctx, secret),
    /** @returns hash of the browser's cookie */
    bind: (ctx: Context): string => {
      const value = read(ctx) ?? randomBytes(32).toString('base64url');
      append(ctx, value);
      return hashSecret(value);
    },
    clear: (ctx: Context): void => append(ctx, '', '; Max-Age=0'),
  };
}

/** Stores only the cookie's hash. */
export function browserCookie(publicUrl: string) {
  // `__Host-` would forbid the narrow path.
  return secretCookie(publicUrl, {
    prefix: '__Secure-',
    name: 'pay_browser',
    attributes: `Path=/pay; Max-Age=${A_WEEK_S}`,
  });
}

/** Half of a secret is random, half its signature: 128 bits each. */
const HALF_BYTES = 16;

/** Creates a secret that the holder of the key recognizes without a database. */
export function createSignedSecret(key: Buffer, use: string): string {
  const random = randomBytes(HALF_BYTES);
  return Buffer.concat([random, sign(key, use, random)]).toString('base64url');
}

export function isSignedSecret(key: Buffer, use: string, secret: string): boolean {
  const bytes = Buffer.from(secret, 'base64url');
  if (bytes.length !== 2 * HALF_BYTES) return false;
  const [random, signature] = [bytes.subarray(0, HALF_BYTES), bytes.subarray(HALF_BYTES)];
  return timingSafeEqual(sign(key, use, random), signature);
}

function sign(key: Buffer, use: string, random: Buffer): Buffer {
  const signature = createHmac('sha256', key).update(`${use}\n`).update(random).digest();
  return signature.subarray(0, HALF_BYTES);
}
