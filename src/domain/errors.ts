import { z } from 'zod';
import { CALLBACK_RESOURCES } from './banks/callback';
import { CODE, LOGGED, OWN_ID, OWN_TEXT } from './logged';

const ERROR_TYPES = [
  'invalid_request_error',
  'authentication_error',
  'permission_error',
  'idempotency_error',
  'rate_limit_error',
  'api_error',
] as const;

/** `code` describes this field only. @see docs/api.md#errors */
export const ErrorDetail = z
  .object({
    code: z.string().register(LOGGED, CODE),
    field: z.string().register(LOGGED, OWN_TEXT),
    message: z.string().register(LOGGED, OWN_TEXT),
  })
  .meta({ id: 'ErrorDetail' });
export type ErrorDetail = z.infer<typeof ErrorDetail>;

export const DETAILS_MAX = 100;

export const ErrorBody = z
  .object({
    error: z.object({
      type: z.enum(ERROR_TYPES),
      code: z.string().register(LOGGED, CODE),
      message: z.string().register(LOGGED, OWN_TEXT),
      details: z.array(ErrorDetail).max(DETAILS_MAX).optional(),
      request_id: z.string().register(LOGGED, OWN_ID),
    }),
  })
  .meta({ id: 'Error', description: 'Every error has this shape.' });

const RESOURCE_NOUNS = [...CALLBACK_RESOURCES, 'recipient', 'event', 'webhook_endpoint'] as const;
export type ResourceNoun = (typeof RESOURCE_NOUNS)[number];
export type NotFoundCode = `${ResourceNoun}_not_found`;

const NOT_FOUND_CODES = Object.fromEntries(
  RESOURCE_NOUNS.toSorted().map((noun) => [
    `${noun}_not_found`,
    { status: 404, type: 'invalid_request_error' },
  ]),
) as Record<NotFoundCode, { status: 404; type: 'invalid_request_error' }>;

/** @see docs/decisions.md#errors */
export const ERROR_CODES = {
  invalid_request: { status: 400, type: 'invalid_request_error' },
  invalid_json: { status: 400, type: 'invalid_request_error' },
  invalid_amount: { status: 400, type: 'invalid_request_error' },
  invalid_cursor: { status: 400, type: 'invalid_request_error' },
  idempotency_key_required: { status: 400, type: 'invalid_request_error' },
  idempotency_key_invalid: { status: 400, type: 'invalid_request_error' },
  api_key_missing: { status: 401, type: 'authentication_error' },
  api_key_invalid: { status: 401, type: 'authentication_error' },
  api_key_revoked: { status: 401, type: 'authentication_error' },
  signature_invalid: { status: 401, type: 'authentication_error' },
  api_key_expired: { status: 401, type: 'authentication_error' },
  account_frozen: { status: 403, type: 'permission_error' },
  api_key_address_refused: { status: 403, type: 'permission_error' },
  api_key_scope_insufficient: { status: 403, type: 'permission_error' },
  crypto_not_enabled: { status: 403, type: 'permission_error' },
  sandbox_only: { status: 403, type: 'permission_error' },
  ...NOT_FOUND_CODES,
  route_not_found: { status: 404, type: 'invalid_request_error' },
  method_not_allowed: { status: 405, type: 'invalid_request_error' },
  clock_advancing: { status: 409, type: 'invalid_request_error' },
  clock_too_busy: { status: 422, type: 'invalid_request_error' },
  callback_conflict: { status: 409, type: 'idempotency_error' },
  idempotency_request_in_progress: { status: 409, type: 'idempotency_error' },
  body_too_large: { status: 413, type: 'invalid_request_error' },
  unsupported_media_type: { status: 415, type: 'invalid_request_error' },
  idempotency_key_reused: { status: 422, type: 'idempotency_error' },
  method_requirements_not_met: { status: 422, type: 'invalid_request_error' },
  cannot_cancel: { status: 422, type: 'invalid_request_error' },
  refund_not_supported: { status: 422, type: 'invalid_request_error' },
  payment_disputed: { status: 422, type: 'invalid_request_error' },
  payment_not_settled: { status: 422, type: 'invalid_request_error' },
  refund_window_expired: { status: 422, type: 'invalid_request_error' },
  refund_amount_exceeds_balance: { status: 422, type: 'invalid_request_error' },
  balance_account_not_found: { status: 422, type: 'invalid_request_error' },
  rail_requirements_not_met: { status: 422, type: 'invalid_request_error' },
  recipient_deleted: { status: 422, type: 'invalid_request_error' },
  recipient_type_mismatch: { status: 422, type: 'invalid_request_error' },
  insufficient_balance: { status: 422, type: 'invalid_request_error' },
  asset_not_supported: { status: 422, type: 'invalid_request_error' },
  asset_not_available: { status: 422, type: 'invalid_request_error' },
  wallet_not_registered: { status: 422, type: 'invalid_request_error' },
  dispute_closed: { status: 422, type: 'invalid_request_error' },
  evidence_not_supported: { status: 422, type: 'invalid_request_error' },
  endpoint_disabled: { status: 422, type: 'invalid_request_error' },
  endpoint_limit_reached: { status: 422, type: 'invalid_request_error' },
  payout_limit_exceeded: { status: 422, type: 'invalid_request_error' },
  rate_limited: { status: 429, type: 'rate_limit_error' },
  books_refused: { status: 500, type: 'api_error' },
  internal_error: { status: 500, type: 'api_error' },
  temporarily_unavailable: { status: 503, type: 'api_error' },
} as const satisfies Record<string, { status: number; type: (typeof ERROR_TYPES)[number] }>;

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}

/** The id does not exist in this account and environment. */
export function notFound<Noun extends ResourceNoun>(noun: Noun) {
  return {
    code: `${noun}_not_found` as const,
    message: `There is no such ${noun.replace('_', ' ')}.`,
  };
}

/** Caller's mistake, or an unavailable service. @see src/api/error-middleware.ts */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: ErrorCode;
  readonly details: readonly ErrorDetail[] | undefined;

  /** @param more.cause logged, never sent */
  constructor(
    code: ErrorCode,
    message: string,
    more: { details?: readonly ErrorDetail[] | undefined; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.code = code;
    this.details = more.details;
  }
}

export interface RuleViolation {
  code: ErrorCode;
  message: string;
  details?: ErrorDetail[];
}

export function buildRefusal({ code, message, details }: RuleViolation): Refusal {
  return new Refusal(code, message, { details });
}

/** Unknown outcome, which a retry with the same key finds out. */
export function unavailable(problem: string, cause: unknown): Refusal {
  const advice = 'Try again, with the same Idempotency-Key if the request has one.';
  return new Refusal('temporarily_unavailable', `${problem} ${advice}`, { cause });
}

/** Refusal outside the API; its message is for the operator. */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
