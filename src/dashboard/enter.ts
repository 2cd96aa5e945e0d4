import type { Context } from 'koa';
import { inTransaction } from '../mongo';
import { hashSecret } from '../pages/browser';
import { seeOther } from '../pages/security';
import { auditBy } from '../store/audit';
import type { UserDocument } from '../store/users';
import { type Dashboard, homeOf } from './context';
import { beginSession } from './session';

/** Addresses that sign-in may lead back to: pages of ours, and nothing else. */
const NEXT = /^\/dashboard\/(?:sandbox|live)(?:\/[\w-]+){1,3}$/;

/** Page that sign-in leads back to; undefined when none was asked for, or one that is not ours. */
export function nextOf(fields: URLSearchParams): string | undefined {
  const next = fields.get('next') ?? '';
  return NEXT.test(next) ? next : undefined;
}

/** Begins the session that waits for the second factor. */
export async function enterHalf(ctx: Context, dashboard: Dashboard, user: UserDocument) {
  await dropSession(ctx, dashboard);
  const { sessions } = dashboard.stores;
  dashboard.cookie.give(ctx, await beginSession(sessions, user, 'password', dashboard.now()));
}

/** Begins the whole session under a new id, and leads on. */
export async function enterWhole(
  ctx: Context,
  dashboard: Dashboard,
  user: UserDocument,
  next: string | undefined,
): Promise<void> {
  const { stores, mongo, now } = dashboard;
  await dropSession(ctx, dashboard);
  const { _id, account_id, email } = user;
  const audit = auditBy(dashboard, { door: 'dashboard', user_id: _id, email });
  await inTransaction(mongo, async (session) => {
    await stores.users.signedIn(_id, now().toISOString(), session);
    await audit({ act: 'user.signed_in', account_id, livemode: null, target: _id }, session);
  });
  dashboard.cookie.give(ctx, await beginSession(stores.sessions, user, 'whole', now()));
  seeOther(ctx, next ?? homeOf(dashboard));
}

/** Ends the session that the browser came with, its own or one that was planted. */
async function dropSession(ctx: Context, { cookie, stores }: Dashboard): Promise<void> {
  const secret = cookie.read(ctx);
  if (secret !== null) await stores.sessions.end(hashSecret(secret));
}
