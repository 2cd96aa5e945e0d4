import type { ErrorCode, ErrorDetail } from './schema';

/** Every error of this package, but the reason of an aborted `AbortSignal`. */
export class PaymentsError extends Error {
  override readonly name: string = 'PaymentsError';
}

/** `code` of an `ApiError`. The API adds codes, so an unknown one is a plain string. */
export type AnyErrorCode = ErrorCode | (string & {});

interface Refusal {
  status: number;
  type: string;
  code: string;
  message: string;
  details: ErrorDetail[];
  requestId: string | null;
}

/** The API refused the call. Act on `code`; `message` is for people and may change. */
export class ApiError<Code extends string = AnyErrorCode> extends PaymentsError {
  override readonly name = 'ApiError';
  /** HTTP status. */
  readonly status: number;
  /** Group of the code, such as `invalid_request_error`. */
  readonly type: string;
  readonly code: Code;
  /** Every field that is wrong. */
  readonly details: readonly ErrorDetail[];
  /** Names the call in the service's logs; include it when you ask for help. */
  readonly requestId: string | null;

  constructor({ status, type, code, message, details, requestId }: Refusal) {
    super(message);
    this.status = status;
    this.type = type;
    this.code = code as Code;
    this.details = details;
    this.requestId = requestId;
  }
}

/**
 * No answer came, also after the retries: the outcome of a write is unknown. Repeat a create with the
 * same `idempotencyKey`.
 */
export class ConnectionError extends PaymentsError {
  override readonly name: string = 'ConnectionError';
}

/** No complete answer came within `timeoutMs`. */
export class TimeoutError extends ConnectionError {
  override readonly name = 'TimeoutError';
}

/** The webhook is not from the service, is too old, or was changed on its route: answer 400. */
export class SignatureError extends PaymentsError {
  override readonly name = 'SignatureError';
}

/** Whether an error is a refusal, with one of the codes if any are named. */
export function isApiError<Code extends ErrorCode>(
  error: unknown,
  ...codes: Code[]
): error is ApiError<Code> {
  if (!(error instanceof ApiError)) return false;
  return codes.length === 0 || codes.some((code) => code === error.code);
}

/** Reads the body of a refusal; what a proxy answers has no code of the API. */
export function readRefusal(status: number, text: string, requestId: string | null): ApiError {
  const error = readError(text);
  return new ApiError({
    status,
    type: error.type ?? 'api_error',
    code: error.code ?? 'unexpected_response',
    message: error.message ?? `The server answered ${status} without an error of the API.`,
    details: error.details ?? [],
    requestId: error.request_id ?? requestId,
  });
}

/** Parses a successful answer. @throws ApiError for what is not from the API, such as a proxy's page */
export function parseAnswer<T>({ status, text, headers }: Answer): T {
  try {
    return JSON.parse(text);
  } catch {
    throw readRefusal(status, text, headers.get('Request-Id'));
  }
}

interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

interface WireError {
  type?: string;
  code?: string;
  message?: string;
  details?: ErrorDetail[];
  request_id?: string;
}

function readError(text: string): WireError {
  try {
    const body: { error?: WireError } | null = JSON.parse(text);
    return body?.error ?? {};
  } catch {
    return {};
  }
}
