import type { Context } from 'koa';
import type { UserDocument } from '../../service/merchants/team/sessions';
import { SESSION_PREFIX, UNKNOWN_BROWSER } from '../../service/merchants/team/sessions';
import type { Origin } from '../../service/operators/audit/log';
import type { DashboardDeps } from './route';

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
