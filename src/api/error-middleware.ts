import type { Context, Middleware } from 'koa';
import { MongoError, MongoServerError } from 'mongodb';
import type { Logger } from '../base/log';
import { Contention } from '../base/mongo';
import { omitUndefined } from '../domain/defined';
import { ERROR_CODES, type ErrorCode, Refusal, unavailable } from '../domain/errors';
import { getRequestId } from './context';

/** Server codes: unavailable, stepping down or overloaded. */
const UNAVAILABLE_CODES = new Set([
  6, 7, 50, 64, 89, 91, 100, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436, 14031,
]);

/** The only place that turns an error into a response. */
export function answerErrors(log: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const refusal = toRefusal(error, ctx, log);
      ctx.state['code'] = refusal.code;
      ctx.status = ERROR_CODES[refusal.code].status;
      for (const [name, value] of Object.entries(HEADERS[refusal.code] ?? {})) {
        if (!ctx.res.hasHeader(name)) ctx.set(name, value);
      }
      ctx.body = errorBody(refusal, getRequestId(ctx));
    }
  };
}

/** @see docs/api.md#errors */
export function errorBody(refusal: Refusal, requestId: string) {
  const { code, message, details } = refusal;
  const { type } = ERROR_CODES[code];
  return { error: omitUndefined({ type, code, message, details, request_id: requestId }) };
}

const CHALLENGE = { 'WWW-Authenticate': 'Bearer' };
const RETRY_SOON = { 'Retry-After': '1' };

/** Headers set with the refusal, such as `Allow`, take precedence. */
const HEADERS: Partial<Record<ErrorCode, Record<string, string>>> = {
  api_key_missing: CHALLENGE,
  api_key_invalid: CHALLENGE,
  api_key_expired: CHALLENGE,
  api_key_revoked: CHALLENGE,
  signature_invalid: { 'WWW-Authenticate': 'Connector-Signature' },
  clock_advancing: RETRY_SOON,
  idempotency_request_in_progress: RETRY_SOON,
  temporarily_unavailable: RETRY_SOON,
  rate_limited: { 'Retry-After': '10' },
};

function toRefusal(error: unknown, ctx: Context, log: Logger): Refusal {
  const request_id = getRequestId(ctx);
  if (error instanceof Refusal) {
    const { cause: err } = error;
    if (err !== undefined) log.warn({ request_id, code: error.code, err }, 'refused by an outage');
    return error;
  }
  if (error instanceof Contention) {
    ctx.set('Retry-After', String(Math.ceil(error.retryMs / 1_000)));
    return unavailable('Other changes are in progress: try again.', error);
  }
  const isServers = error instanceof MongoServerError;
  const isAway = !isServers || UNAVAILABLE_CODES.has(Number(error.code));
  if (error instanceof MongoError && isAway) {
    log.warn({ request_id, err: error }, 'the database is away');
    return unavailable('The database did not answer in time.', error);
  }
  const hasStatus = error instanceof Error && 'status' in error;
  const status = hasStatus && typeof error.status === 'number' ? error.status : 500;
  if (error instanceof URIError || (status >= 400 && status < 500)) {
    return new Refusal('invalid_request', 'The request cannot be read.');
  }
  log.error({ request_id, err: error }, 'unexpected error');
  return new Refusal('internal_error', 'Something went wrong on our side.');
}
