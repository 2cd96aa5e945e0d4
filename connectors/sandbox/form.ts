import type { RouterContext } from '@koa/router';
import getRawBody from 'raw-body';

const FORM_BYTES_MAX = 4_096;

/** Reads a form; empty where the request sent none. */
export async function readForm(ctx: RouterContext): Promise<URLSearchParams> {
  if (ctx.is('application/x-www-form-urlencoded') === false) return new URLSearchParams();
  const body = await getRawBody(ctx.req, { limit: FORM_BYTES_MAX, encoding: 'utf8' });
  return new URLSearchParams(body);
}
