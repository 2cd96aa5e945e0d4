import type { Context } from 'koa';
import type { DashboardDeps } from '../deps';
import type { DashboardAssets, NavigationEntry } from './layout';
import type { Env } from './route';
import type { sessionCookie } from './session-cookie';

export interface Dashboard extends DashboardDeps {
  assets: DashboardAssets;
  cookie: ReturnType<typeof sessionCookie>;
  navigation: readonly NavigationEntry[];
}

export function getHomePath(
  { navigation }: Pick<Dashboard, 'navigation'>,
  env: Env = 'sandbox',
): string {
  return `/dashboard/${env}${navigation[0]?.path ?? ''}`;
}

export function sendHtml(ctx: Context, html: string, status = 200): void {
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = html;
}
