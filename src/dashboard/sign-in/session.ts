import type { Context } from 'koa';
import { seeOther } from '../../pages/security';
import { startSession, type UserDocument } from '../../service/team/sessions';
import type { Dashboard } from '../frame/context';

/** Addresses that sign-in may lead back to: pages of the dashboard, and nothing else. */
const NEXT = /^\/dashboard\/(?:sandbox|live)(?:\/[\w-]+){1,3}$/;

/** Page that sign-in leads back to; undefined when the request names none of the dashboard's. */
export function getNextPath(fields: URLSearchParams): string | undefined {
  const next = fields.get('next') ?? '';
  return NEXT.test(next) ? next : undefined;
}

/**
 * Starts a session in place of the one that the browser has, and redirects to `path`.
 * @returns false when the password has changed since it was checked
 */
export async function openSession(
  ctx: Context,
  dashboard: Dashboard,
  user: UserDocument,
  { stage, path }: { stage: 'password' | 'whole'; path: string },
): Promise<boolean> {
  const { cookie } = dashboard;
  const secret = await startSession(dashboard, user, stage, cookie.read(ctx));
  if (secret === null) return false;
  cookie.write(ctx, secret);
  seeOther(ctx, path);
  return true;
}
