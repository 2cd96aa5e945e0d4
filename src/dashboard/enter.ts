import type { Context } from 'koa';
import type { ClientSession } from 'mongodb';
import { inTransaction } from '../mongo';
import { hashSecret } from '../pages/browser';
import { seeOther } from '../pages/security';
import { auditBy } from '../store/audit';
import type { SessionDocument } from '../store/sessions';
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

/**
 * Begins the session that waits for the second factor.
 * @returns false where the password has been changed since it was checked
 */
export async function enterHalf(
  ctx: Context,
  dashboard: Dashboard,
  user: UserDocument,
): Promise<boolean> {
  return await enter(ctx, dashboard, user, 'password');
}

/**
 * Begins the whole session under a new id, and leads on.
 * @returns false where the password has been changed since it was checked
 */
export async function enterWhole(
  ctx: Context,
  dashboard: Dashboard,
  user: UserDocument,
  next: string | undefined,
): Promise<boolean> {
  const { stores, now } = dashboard;
  const { _id, account_id, email } = user;
  const audit = auditBy(dashboard, { door: 'dashboard', user_id: _id, email });
  const isIn = await enter(ctx, dashboard, user, 'whole', async (session) => {
    await stores.users.signedIn(_id, now().toISOString(), session);
    await audit({ act: 'user.signed_in', account_id, livemode: null, target: _id }, session);
  });
  if (isIn) seeOther(ctx, next ?? homeOf(dashboard));
  return isIn;
}

/**
 * Begins a session in one transaction with a look at the person: who changes a password ends the
 * sessions that there are, and one that is about to begin must not be left.
 */
async function enter(
  ctx: Context,
  dashboard: Dashboard,
  user: UserDocument,
  stage: SessionDocument['stage'],
  note?: (session: ClientSession) => Promise<void>,
): Promise<boolean> {
  const { stores, mongo, cookie, now } = dashboard;
  await dropSession(ctx, dashboard);
  const secret = await inTransaction(mongo, async (session) => {
    if (!(await stores.users.holdLogin(user, now().toISOString(), session))) return null;
    await note?.(session);
    return await beginSession(stores.sessions, user, stage, now(), session);
  });
  if (secret !== null) cookie.give(ctx, secret);
  return secret !== null;
}

/** Ends the session that the browser came with, its own or one that was planted. */
async function dropSession(ctx: Context, { cookie, stores }: Dashboard): Promise<void> {
  const secret = cookie.read(ctx);
  if (secret !== null) await stores.sessions.end(hashSecret(secret));
}
