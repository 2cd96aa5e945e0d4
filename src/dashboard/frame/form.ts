import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import getRawBody from 'raw-body';
import { Refusal } from '../../domain/errors';
import type { ActOfApi, AuditFacts } from '../../domain/operators/audit-log';
import { isBreachedPassword, isLongEnough, PASSWORD_LENGTH } from '../../encryption/password';
import { isForeignPost } from '../../pages/security';
import { withAuditLine } from '../../service/operators/audit/log';
import { isCsrfToken } from './context';
import type { Answer, Call, PageDeps, Route, Upload } from './route';

const BODY_BYTES_MAX = 32 * 1_024;
const FIELDS_MAX = 100;
const FORM = 'application/x-www-form-urlencoded';
const UPLOAD = 'multipart/form-data';

interface SentForm {
  form: URLSearchParams;
  file: Uint8Array | null;
}

/**
 * @param secret session whose token the form must carry; null before sign-in
 * @returns the name of a notice where the form is refused
 */
export async function readOwnForm(
  ctx: Context,
  publicUrl: string,
  secret: string | null,
): Promise<URLSearchParams | 'foreign' | 'unreadable'> {
  const sent = await readOwnUpload(ctx, publicUrl, secret);
  return typeof sent === 'string' ? sent : sent.form;
}

export async function readOwnUpload(
  ctx: Context,
  publicUrl: string,
  secret: string | null,
  { upload, bytesMax = BODY_BYTES_MAX }: Pick<Route, 'upload' | 'bytesMax'> = {},
): Promise<SentForm | 'foreign' | 'unreadable'> {
  if (isForeignPost(ctx, publicUrl)) return 'foreign';
  const type = ctx.is(upload === undefined ? [FORM] : [FORM, UPLOAD]);
  if (type === false || type === null) return 'unreadable';
  const limit = (type === UPLOAD && upload?.bytesMax) || bytesMax;
  const options = { limit, length: ctx.request.length };
  const body = await getRawBody(ctx.req, options).catch((error: unknown) => {
    if (Object(error).type === 'entity.too.large') return null;
    throw error;
  });
  if (body === null) return 'unreadable';
  const sent =
    type === UPLOAD && upload !== undefined
      ? await readParts(body, ctx.get('Content-Type'), upload)
      : { form: new URLSearchParams(body.toString()), file: null };
  if (sent === null || sent.form.size > FIELDS_MAX) return 'unreadable';
  return secret === null || isCsrfToken(sent.form.get('csrf') ?? '', secret) ? sent : 'foreign';
}

async function readParts(
  body: Buffer,
  type: string,
  { field: name }: Upload,
): Promise<SentForm | null> {
  const [, boundary = ''] = /boundary="?([^";]+)/i.exec(type) ?? [];
  // Parsing thousands of small parts would hold the process for a second.
  const delimiter = Buffer.from(`--${boundary}`).toString('latin1');
  // By bytes, as the parser finds them: it reads a boundary with other letters as UTF-8.
  const pieces = body.toString('latin1').split(delimiter, FIELDS_MAX + 2);
  if (pieces.length > FIELDS_MAX + 1) return null;
  // Not the header that came, which may have another boundary, too.
  const headers = { 'Content-Type': `${UPLOAD}; boundary="${boundary}"` };
  const parts = await new Response(new Uint8Array(body), { headers }).formData().catch(() => null);
  if (parts === null) return null;
  const form = new URLSearchParams();
  for (const [key, value] of parts) if (typeof value === 'string') form.append(key, value);
  const chosen = parts.get(name);
  // A field without a choice is sent as an empty file.
  if (chosen === null || typeof chosen === 'string' || chosen.size === 0)
    return { form, file: null };
  return { form, file: new Uint8Array(await chosen.arrayBuffer()) };
}

export function field(form: URLSearchParams, name: string): string {
  return form.get(name)?.trim() ?? '';
}

/** Key of a form that adds something, so that a form sent twice adds it once. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const FORM_KEY = /^dashboard-[0-9a-f-]{36}$/;

export function newFormKey(): string {
  return `dashboard-${randomUUID()}`;
}

/** Refusals after which the act may still be done. */
const OUTCOME_UNKNOWN = ['temporarily_unavailable', 'idempotency_request_in_progress'];

interface MoneyAct<Result> {
  act: ActOfApi;
  target: string | null;
  facts?: AuditFacts;
  /** Page that shows why the act was refused. */
  path: string;
  run: () => Promise<Result>;
  success: (result: Result) => Answer;
  /** Answers with the same form, since another would have another key, and act twice. */
  unknown: Answer | (() => Promise<Answer>);
}

/**
 * Acts between audit lines of the request and the outcome (`done`, `replayed`, a refusal's code, or
 * `unknown`).
 */
export async function actOnMoney<Result extends { id?: string; isReplayed?: boolean }>(
  { log }: Pick<PageDeps, 'log'>,
  call: Call,
  { act, target, facts = {}, path, run, success, unknown }: MoneyAct<Result>,
): Promise<Answer> {
  const change = { act, ...call.scope, target, after: facts };
  try {
    const result = await withAuditLine(call.audit, change, run, ({ id, isReplayed }) => ({
      id,
      ...(isReplayed === true && { outcome: 'replayed' }),
    }));
    return success(result);
  } catch (err) {
    if (err instanceof Refusal && !OUTCOME_UNKNOWN.includes(err.code)) {
      return { go: path, bad: err.message };
    }
    if (!(err instanceof Refusal)) log.error({ err }, 'the outcome of a form is not known');
    return typeof unknown === 'function' ? await unknown() : unknown;
  }
}

export function findPasswordFault(password: string): string | undefined {
  const { min, max } = PASSWORD_LENGTH;
  if (!isLongEnough(password)) return `Choose ${min} to ${max} characters.`;
  if (!isBreachedPassword(password)) return undefined;
  return 'This password is known from breaches of other services. Choose another one.';
}
