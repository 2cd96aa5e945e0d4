import type { Context } from 'koa';
import { seeOther } from '../../pages/security';
import { startSession, type UserDocument } from '../../service/team/sessions';
import type { Dashboard } from '../frame/context';

/** Pages of the dashboard, the only addresses that sign-in leads back to. */
const NEXT = /^\/dashboard\/(?:sandbox|live)(?:\/[\w-]+){1,3}$/;

export function getNextPath(fields: URLSearchParams): string | undefined {
  const next = fields.get('next') ?? '';
  return NEXT.test(next) ? next : undefined;
}

/**
 * Replaces the browser's session, and redirects to `path`.
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
