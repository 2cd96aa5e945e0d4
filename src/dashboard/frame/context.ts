import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { createSignedSecret, hashSecret, isSignedSecret, secretCookie } from '../../pages/browser';
import {
  SESSION_PREFIX,
  UNKNOWN_BROWSER,
  type UserDocument,
} from '../../service/merchants/team/sessions';
import type { SignInLanes } from '../../service/merchants/team/sign-in';
import type { Origin } from '../../service/operators/audit/log';
import type { DashboardDeps, Route, Viewer } from './route';

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

const WINDOW_SECONDS = 10;
/** Costs in one window: of a session 500 plain pages, 100 overviews, or twenty exports. */
export const VISIT_COSTS_MAX = { session: 1_000, account: 2_000 } as const;
const COSTS = { get: 2, post: 5 } as const;

type VisitLimits = ReturnType<typeof createVisitLimits>;

/** @see docs/dashboard.md#environments */
export function createVisitLimits(costsMax: Record<keyof typeof VISIT_COSTS_MAX, number>) {
  const createLimit = (points: number) =>
    new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
  const sessions = createLimit(costsMax.session);
  const accounts = createLimit(costsMax.account);
  return {
    /** @returns seconds to wait before the session is loaded; 0 when admitted */
    findWait: async (session: string): Promise<number> => {
      const used = await sessions.get(session);
      return used !== null && used.consumedPoints > costsMax.session ? toSeconds(used) : 0;
    },
    /**
     * Counts owners apart, so that no member keeps them out.
     * @returns seconds to wait; 0 when admitted
     */
    count: async (
      { session, account, env, user }: Pick<Viewer, 'session' | 'account' | 'env' | 'user'>,
      { method, cost = COSTS[method] }: Pick<Route, 'method' | 'cost'>,
    ): Promise<number> => {
      try {
        await sessions.consume(session, cost);
        await accounts.consume(`${account.id}:${env}:${user.role === 'owner'}`, cost);
        return 0;
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        return toSeconds(error);
      }
    },
  };
}

function toSeconds({ msBeforeNext }: RateLimiterRes): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1_000));
}

export interface Visitor {
  user_id?: string;
  user_ids?: readonly string[];
  account_id?: string;
  livemode?: boolean;
  session?: string;
  proof?: 'password' | 'code' | 'passkey' | 'password_again';
  outcome?: 'right' | 'wrong' | 'too_many' | 'several' | 'expired';
}

export function noteVisitor(ctx: Context, facts: Visitor): void {
  ctx.state['visitor'] = { ...readVisitor(ctx), ...facts };
}

export function readVisitor(ctx: Context): Visitor {
  const state: { visitor?: Visitor } = ctx.state;
  return state.visitor ?? {};
}

export function getOrigin(
  ctx: Context,
  { clientAddress }: Pick<DashboardDeps, 'clientAddress'>,
): Origin {
  return {
    address: clientAddress(ctx.req),
    request_id: String(ctx.state['requestId'] ?? 'unknown'),
  };
}

/** First digits of the id, which is a hash of the secret. */
export function describeSession(id: string) {
  return { session: id.slice(0, SESSION_PREFIX) };
}

export function describeUser(
  { _id: user_id, account_id }: Pick<UserDocument, '_id' | 'account_id'>,
  sessionId: string,
) {
  return { user_id, account_id, ...describeSession(sessionId) };
}

/** Most specific first: Edge also says Chrome and Safari. */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['FxiOS/', 'Firefox'],
  ['CriOS/', 'Chrome'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const;

const SYSTEMS = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['Windows', 'Windows'],
  ['Macintosh', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const;

/** Our own words, never what it sent: `Firefox on Windows`. */
export function nameBrowser(userAgent: string): string {
  const find = (names: typeof BROWSERS | typeof SYSTEMS) =>
    names.find(([word]) => userAgent.includes(word))?.[1];
  const browser = find(BROWSERS) ?? UNKNOWN_BROWSER;
  const system = find(SYSTEMS);
  return system === undefined ? browser : `${browser} on ${system}`;
}
