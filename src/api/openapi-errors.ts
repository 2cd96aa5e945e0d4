import { ERROR_CODES, ErrorBody, type ErrorCode, type ErrorDetail } from '../domain/errors';
import type { Endpoint } from '../domain/wire/endpoint';
import { COMMON_HEADERS, headerRefs, type Json, type ToSchema } from './openapi-parts';

const COMMON: readonly ErrorCode[] = [
  'api_key_missing',
  'api_key_invalid',
  'api_key_revoked',
  'api_key_expired',
  'api_key_address_refused',
  'rate_limited',
  'internal_error',
  'temporarily_unavailable',
];
const WITH_INPUT: readonly ErrorCode[] = ['invalid_request'];
const WITH_BODY: readonly ErrorCode[] = [
  'invalid_json',
  'body_too_large',
  'unsupported_media_type',
];
const CREATING: readonly ErrorCode[] = [
  'idempotency_key_required',
  'idempotency_key_invalid',
  'idempotency_key_reused',
  'idempotency_request_in_progress',
  'books_refused',
];

const RETRYABLE = new Set<number>([409, 429, 503]);

export function errorTable(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, type }]) => `| \`${code}\` | ${status} | \`${type}\` |`,
  );
  return ['| `error.code` | Status | `error.type` |', '|---|---|---|', ...rows].join('\n');
}

function listCodes(endpoint: Endpoint): ReadonlySet<ErrorCode> {
  return new Set<ErrorCode>([
    ...COMMON,
    ...(endpoint.scope === null ? [] : (['api_key_scope_insufficient'] as const)),
    ...(endpoint.method === 'get' ? [] : (['account_frozen'] as const)),
    ...(endpoint.query || endpoint.body ? WITH_INPUT : []),
    ...(endpoint.body ? WITH_BODY : []),
    ...(endpoint.creates ? CREATING : []),
    ...endpoint.codes,
  ]);
}

export function errorResponses(endpoint: Endpoint, schema: ToSchema): Json {
  const codes = [...listCodes(endpoint)];
  const statuses = new Set<number>(codes.map((code) => ERROR_CODES[code].status));
  const findCodes = (status: number) => codes.filter((c) => ERROR_CODES[c].status === status);
  return Object.fromEntries(
    [...statuses].map((status) => [
      status,
      {
        description: `\`${findCodes(status).join('`, `')}\``,
        headers: headerRefs(...COMMON_HEADERS, ...(RETRYABLE.has(status) ? ['Retry-After'] : [])),
        content: {
          'application/json': {
            schema: schema(ErrorBody, 'output'),
            examples: Object.fromEntries(
              findCodes(status).map((code) => [code, { $ref: `#/components/examples/${code}` }]),
            ),
          },
        },
      },
    ]),
  );
}

const DETAILS: Readonly<Partial<Record<ErrorCode, ErrorDetail>>> = {
  invalid_request: { code: 'required', field: 'currency', message: 'is required' },
  invalid_amount: { code: 'invalid_amount', field: 'amount', message: 'must be at least 1' },
  method_requirements_not_met: {
    ...{ code: 'currency_not_supported', field: 'currency' },
    message: 'is not a currency of ideal',
  },
  rail_requirements_not_met: { code: 'required', field: 'iban', message: 'is required' },
};

export function errorExamples(endpoints: readonly Endpoint[]): Json {
  const codes = new Set(endpoints.flatMap((endpoint) => [...listCodes(endpoint)]));
  return Object.fromEntries([...codes].map((code) => [code, { value: buildError(code) }]));
}

function buildError(code: ErrorCode): Json {
  const details = DETAILS[code];
  const message = 'Says for a person what is wrong. Act on the code: the words may change.';
  const { type } = ERROR_CODES[code];
  const request_id = '3f1f0c9e-8a54-4b1d-9f0e-5d2c7a6b8e10';
  return { error: { type, code, message, ...(details && { details: [details] }), request_id } };
}
