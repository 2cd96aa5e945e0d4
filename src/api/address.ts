import type { Context } from 'koa';

export function getAddress(ctx: Context): string {
  const state: { address?: string } = ctx.state;
  return state.address ?? ctx.ip;
}
