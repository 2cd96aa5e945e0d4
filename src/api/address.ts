import type { Context } from 'koa';

/** Network address of the caller, behind trusted proxies. */
export function getAddress(ctx: Context): string {
  const state: { address?: string } = ctx.state;
  return state.address ?? ctx.ip;
}
