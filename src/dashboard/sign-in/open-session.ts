import type { RouterContext } from '@koa/router';
import { hashSecret } from '../../pages/browser';
import { seeOther } from '../../pages/security';
import {
  type SignInProof,
  startSession,
  type UserDocument,
} from '../../service/merchants/team/sessions';
import { nameBrowser } from '../frame/browser-name';
import type { Dashboard } from '../frame/context';
import { describeUser, getOrigin, noteVisitor } from '../frame/visitor';

/** @returns false when what was checked has changed since */
export async function openSession(
  ctx: RouterContext,
  dashboard: Dashboard,
  user: UserDocument,
  { path, ...fresh }: { stage: 'password' | 'whole'; path: string; proof: SignInProof },
): Promise<boolean> {
  const { cookie, device } = dashboard;
  const deviceSecret = device.readOrSign(ctx);
  const origin = getOrigin(ctx, dashboard);
  const cookies = { device: hashSecret(deviceSecret), oldSecret: cookie.read(ctx) };
  const browser = nameBrowser(ctx.get('User-Agent'));
  const session = { ...fresh, ...cookies, browser, origin };
  const secret = await startSession(dashboard, user, session);
  if (secret === null) return false;
  noteVisitor(ctx, describeUser(user, hashSecret(secret)));
  cookie.write(ctx, secret);
  if (fresh.stage === 'whole') device.write(ctx, deviceSecret);
  seeOther(ctx, path);
  return true;
}

/** Only addresses to which sign-in leads back. */
const NEXT = /^\/dashboard\/(?:sandbox|live)(?:\/[\w-]+){1,3}$/;

export function getNextPath(fields: URLSearchParams): string | undefined {
  const next = fields.get('next') ?? '';
  return NEXT.test(next) ? next : undefined;
}
