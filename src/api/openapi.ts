import { z } from 'zod';
import { defined } from '../domain/defined';
import { ERROR_CODES, ErrorBody, type ErrorCode } from '../domain/errors';
import { EVENT_TYPES, type EventType, webhookEventOf } from '../domain/event';
import { ENDPOINTS } from '../domain/wire';
import type { Endpoint } from '../domain/wire/endpoint';
import { linksOf } from './openapi-links';

/** Date of the contract, on every answer as `Service-Version`. `/v1` changes only by addition. */
export const SERVICE_VERSION = '2026-11-21';

type Json = { [key: string]: unknown };

/** Codes that every endpoint can answer. */
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
];

/** OpenAPI 3.1 document, made of the schemas that validate. */
export function openApiDocument(publicUrl: string): Json {
  const components: Json = {};
  const schema = (type: z.ZodType, io: 'input' | 'output') => jsonSchema(type, io, components);
  const paths: Record<string, Json> = {};
  for (const endpoint of ENDPOINTS) {
    paths[endpoint.path] = {
      ...paths[endpoint.path],
      [endpoint.method]: operation(endpoint, schema),
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Payments',
      version: SERVICE_VERSION,
      description:
        'Amounts are integers in minor units. The webhook is the only authoritative signal of ' +
        'success: landing on `success_url` is no proof of payment.\n\n' +
        errorTable(),
    },
    servers: [{ url: publicUrl }],
    security: [{ apiKey: [] }],
    paths,
    webhooks: Object.fromEntries(EVENT_TYPES.map((type) => [type, webhook(type, schema)])),
    components: {
      schemas: components,
      headers: HEADERS,
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
    },
  };
}

/** Table of all codes, with those that belong to no operation, such as an unknown path. */
function errorTable(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, type }]) => `| \`${code}\` | ${status} | \`${type}\` |`,
  );
  return ['| `error.code` | Status | `error.type` |', '|---|---|---|', ...rows].join('\n');
}

type ToSchema = (type: z.ZodType, io: 'input' | 'output') => Json;

const HEADERS: Json = {
  'Request-Id': {
    description: 'Names this call in logs and in `error.request_id`.',
    schema: { type: 'string' },
  },
  'Service-Version': { description: 'Date of the contract.', schema: { type: 'string' } },
  'Idempotent-Replayed': {
    description: '`true` when this is the first answer again.',
    schema: { type: 'string', const: 'true' },
  },
  'Retry-After': { description: 'Seconds.', schema: { type: 'string', pattern: '^\\d+$' } },
  'RateLimit-Limit': {
    description: 'Requests in a window.',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  'RateLimit-Remaining': {
    description: 'Requests left in this window.',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
  'RateLimit-Reset': {
    description: 'Seconds until the window ends.',
    schema: { type: 'string', pattern: '^\\d+$' },
  },
};

function headerRefs(...names: string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const LIMITS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];
const ALWAYS = ['Request-Id', 'Service-Version'];

function operation(endpoint: Endpoint, schema: ToSchema): Json {
  const { success, creates, body } = endpoint;
  const replayed = creates ? ['Idempotent-Replayed'] : [];
  return defined({
    operationId: endpoint.operation,
    summary: endpoint.summary,
    description: endpoint.description,
    'x-required-scope': endpoint.scope ?? undefined,
    parameters: parameters(endpoint, schema),
    requestBody: body && { required: isNeeded(body), content: json(schema(body, 'input')) },
    responses: {
      [success.status]: defined({
        description: success.description,
        headers: headerRefs(...ALWAYS, ...LIMITS, ...replayed),
        content: json(schema(success.schema, 'output')),
        links: linksOf(endpoint, ENDPOINTS),
      }),
      ...errorResponses(endpoint, schema),
    },
  });
}

/** Whether a request without a body is refused, since a field of it has to be there. */
function isNeeded(body: z.ZodType): boolean {
  return !z.safeParse(body, {}).success;
}

function parameters(endpoint: Endpoint, schema: ToSchema): Json[] {
  const of = (place: string, type: z.ZodObject | undefined) =>
    Object.entries(type?.shape ?? {}).map(([name, field]) => ({
      name,
      in: place,
      required: place === 'path',
      schema: schema(field, 'output'),
    }));
  const key = {
    name: 'Idempotency-Key',
    in: 'header',
    required: true,
    description: 'Unique per operation, valid 24 hours. A retry returns the first answer.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
  };
  return [
    ...of('path', endpoint.params),
    ...of('query', endpoint.query),
    ...(endpoint.creates ? [key] : []),
  ];
}

function errorResponses(endpoint: Endpoint, schema: ToSchema): Json {
  const codes = new Set<ErrorCode>([
    ...COMMON,
    ...(endpoint.scope === null ? [] : (['api_key_scope_insufficient'] as const)),
    ...(endpoint.method === 'get' ? [] : (['account_frozen'] as const)),
    ...(endpoint.query || endpoint.body ? WITH_INPUT : []),
    ...(endpoint.body ? WITH_BODY : []),
    ...(endpoint.creates ? CREATING : []),
    ...endpoint.codes,
  ]);
  const statuses = new Set<number>([...codes].map((code) => ERROR_CODES[code].status));
  const having = (status: number) => [...codes].filter((c) => ERROR_CODES[c].status === status);
  return Object.fromEntries(
    [...statuses].map((status) => [
      status,
      {
        description: `\`${having(status).join('`, `')}\``,
        headers: headerRefs(...ALWAYS, ...(RETRIED.has(status) ? ['Retry-After'] : [])),
        content: json(schema(ErrorBody, 'output')),
      },
    ]),
  );
}

const RETRIED = new Set<number>([409, 429, 503]);

function webhook(type: EventType, schema: ToSchema): Json {
  return {
    post: {
      summary: type,
      description: 'Sent unless the `enabled_events` of the endpoint leave it out.',
      parameters: [
        { name: 'Service-Signature', in: 'header', required: true, schema: { type: 'string' } },
        { name: 'Service-Event-Type', in: 'header', required: true, schema: { const: type } },
      ],
      requestBody: { required: true, content: json(schema(webhookEventOf(type), 'output')) },
      responses: { '2XX': { description: 'Acknowledged. Anything else is sent again.' } },
    },
  };
}

function json(schema: Json): Json {
  return { 'application/json': { schema } };
}

/** Named schemas become components; the rest stands in place. */
function jsonSchema(type: z.ZodType, io: 'input' | 'output', components: Json): Json {
  const made = z.toJSONSchema(type, { io, unrepresentable: 'any' });
  const text = JSON.stringify(made).replaceAll('#/$defs/', '#/components/schemas/');
  const { $schema, $defs, id, ...rest } = z
    .looseObject({ $defs: z.record(z.string(), z.looseObject({})).optional() })
    .parse(JSON.parse(text));
  for (const [name, definition] of Object.entries($defs ?? {})) {
    const { id: _, ...plain } = definition;
    components[name] = plain;
  }
  if (typeof id !== 'string') return rest;
  components[id] = rest;
  return { $ref: `#/components/schemas/${id}` };
}
