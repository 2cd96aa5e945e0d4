import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import type { ClientSession } from 'mongodb';
import { hashSecret, SECRET } from '../pages/browser';
import type { SessionDocument, SessionStore } from '../store/sessions';
import type { UserDocument } from '../store/users';

/** Time without use after which a session is over. @see docs/dashboard.md#sessions */
const IDLE_MS = 2 * 3_600_000;
/** Time after which a session is over in any case. @see docs/dashboard.md#sessions */
const WHOLE_MS = 12 * 3_600_000;
/** Time in which the second factor must be given. */
const PASSWORD_MS = 10 * 60_000;
/** Staleness of the idle limit that is let pass, so that not each page writes. */
const TOUCH_MS = 60_000;

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
    give: (ctx: Context, secret: string): void => {
      // The header is written here, since the library refuses `Secure` cookies behind a proxy that
      // ends TLS.
      ctx.append('Set-Cookie', `${name}=${secret}; ${attributes}`);
    },
    clear: (ctx: Context): void => {
      ctx.append('Set-Cookie', `${name}=; ${attributes}; Max-Age=0`);
    },
  };
}

/**
 * Begins a session under a new id, so that one planted in the browser before is worth nothing.
 * @returns secret for the cookie; only its hash is stored
 */
export async function beginSession(
  sessions: Pick<SessionStore, 'insert'>,
  user: Pick<UserDocument, '_id' | 'account_id'>,
  stage: SessionDocument['stage'],
  now: Date,
  transaction?: ClientSession,
): Promise<string> {
  const secret = randomBytes(32).toString('base64url');
  const idle = stage === 'whole' ? IDLE_MS : PASSWORD_MS;
  const session: SessionDocument = {
    _id: hashSecret(secret),
    user_id: user._id,
    account_id: user.account_id,
    stage,
    created_at: now,
    expires_at: new Date(now.getTime() + idle),
    ends_at: new Date(now.getTime() + (stage === 'whole' ? WHOLE_MS : PASSWORD_MS)),
    flash: null,
  };
  await sessions.insert(session, transaction);
  return secret;
}

/** Moves the idle limit on, at most once a minute. */
export async function useSession(
  sessions: Pick<SessionStore, 'touch'>,
  { _id, stage, expires_at, ends_at }: SessionDocument,
  now: Date,
): Promise<void> {
  if (stage !== 'whole') return;
  const next = Math.min(now.getTime() + IDLE_MS, ends_at.getTime());
  if (next - expires_at.getTime() < TOUCH_MS) return;
  await sessions.touch(_id, new Date(next));
}

/** Token for the forms of the browser that holds `secret`; it tells nothing about the secret. */
export function csrfToken(secret: string): string {
  return createHash('sha256').update(`csrf:${secret}`).digest('base64url');
}

export function isCsrfToken(given: string, secret: string): boolean {
  const wanted = Buffer.from(csrfToken(secret));
  const said = Buffer.from(given);
  return said.length === wanted.length && timingSafeEqual(said, wanted);
}
