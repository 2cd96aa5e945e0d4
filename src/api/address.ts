import type { Context } from 'koa';

/** Network address of the caller, behind the proxies that are trusted. */
export function addressOf(ctx: Context): string {
  const state: { address?: string } = ctx.state;
  return state.address ?? ctx.ip;
}
