import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import getRawBody from 'raw-body';
import { isForeignPost } from '../../pages/security';
import type { Flash } from '../../service/team/sessions';
import type { Answer, Call } from './route';
import { isCsrfToken } from './session-cookie';

const BODY_BYTES_MAX = 32 * 1_024;
const FIELDS_MAX = 100;
const FORM = 'application/x-www-form-urlencoded';

/** Reads a form; null where the body is no form or too large. */
async function readForm(ctx: Context): Promise<URLSearchParams | null> {
  if (ctx.is(FORM) !== FORM) return null;
  try {
    const { length } = ctx.request;
    const text = await getRawBody(ctx.req, { limit: BODY_BYTES_MAX, length, encoding: 'utf8' });
    const form = new URLSearchParams(text);
    return form.size > FIELDS_MAX ? null : form;
  } catch (error) {
    if (error instanceof Error && 'type' in error && error.type === 'entity.too.large') return null;
    throw error;
  }
}

/**
 * Reads a form that a page of the dashboard sent.
 * @param secret secret of the session whose token the form must carry; null before sign-in
 * @returns the name of the notice to answer with where the form is refused
 */
export async function readOwnForm(
  ctx: Context,
  publicUrl: string,
  secret: string | null,
): Promise<URLSearchParams | 'foreign' | 'unreadable'> {
  if (isForeignPost(ctx, publicUrl)) return 'foreign';
  const form = await readForm(ctx);
  if (form === null) return 'unreadable';
  return secret === null || isCsrfToken(form.get('csrf') ?? '', secret) ? form : 'foreign';
}

export function field(form: URLSearchParams, name: string): string {
  return form.get(name)?.trim() ?? '';
}

export const FORM_KEY = /^dashboard-[0-9a-f-]{36}$/;

/** Creates an idempotency key, so that a repeated form acts once. */
export function newFormKey(): string {
  return `dashboard-${randomUUID()}`;
}

/** Redirects to a page of this environment, which shows the text once. */
export function redirect(
  { href }: Pick<Call, 'href'>,
  path: string,
  tone: Flash['tone'],
  text: string,
): Answer {
  return { go: href(path), flash: { tone, text } };
}
