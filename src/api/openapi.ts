import { z } from 'zod';
import { omitUndefined } from '../domain/defined';
import { ERROR_CODES, ErrorBody, type ErrorCode, type ErrorDetail } from '../domain/errors';
import { buildEventSchema, EVENT_TYPES, type EventType, eventIds } from '../domain/webhook/event';
import { ENDPOINTS } from '../domain/wire';
import type { Endpoint } from '../domain/wire/endpoint';
import { SAMPLE_IDS, SAMPLE_ORIGIN, SAMPLE_UPDATED } from '../domain/wire/samples';
import {
  buildParameters,
  COMMON_HEADERS,
  getTag,
  HEADERS,
  headerRefs,
  type Json,
  LIMIT_HEADERS,
  TAG_LIST,
  type ToSchema,
  WEBHOOKS,
} from './openapi-parts';

/** Date of the contract. `/v1` changes only by additions. */
export const SERVICE_VERSION = '2026-11-21';

export function openApiDocument(publicUrl: string): Json {
  const components: Json = {};
  // Every response of an error has the same schema: converting it for each takes most of the time.
  const converted = new Map<z.ZodType, Map<string, Json>>();
  const schema: ToSchema = (type, io, name) => {
    const ofType = converted.get(type) ?? new Map<string, Json>();
    converted.set(type, ofType);
    const key = `${io}:${name ?? ''}`;
    const json = ofType.get(key) ?? jsonSchema({ type, io, name, publicUrl }, components);
    ofType.set(key, json);
    return json;
  };
  const paths: Record<string, Json> = {};
  for (const endpoint of ENDPOINTS) {
    paths[endpoint.path] = {
      ...paths[endpoint.path],
      [endpoint.method]: operation(endpoint, schema, components),
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Payments',
      version: SERVICE_VERSION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'Amounts are integers in minor units. The webhook is the only authoritative signal of ' +
        'success: landing on `success_url` is no proof of payment.\n\n' +
        errorTable(),
    },
    servers: [{ url: publicUrl }],
    security: [{ apiKey: [] }],
    tags: TAG_LIST,
    paths,
    webhooks: Object.fromEntries(EVENT_TYPES.map((type) => [type, webhook(type, schema)])),
    components: {
      schemas: components,
      examples: errorExamples(ENDPOINTS),
      headers: HEADERS,
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key, `sk_sandbox_…` or `sk_live_…`: it decides the environment.',
        },
      },
    },
  };
}

function operation(endpoint: Endpoint, schema: ToSchema, components: Json): Json {
  const { success, creates, body } = endpoint;
  const response = schema(success.schema, 'output');
  const replayed = creates ? ['Idempotent-Replayed'] : [];
  const example = buildExample(response, components, success.example);
  const request = body && schema(body, 'input', capitalize(endpoint.operation));
  return omitUndefined({
    operationId: endpoint.operation,
    tags: [getTag(endpoint.path)],
    summary: endpoint.summary,
    description: endpoint.description,
    'x-required-scope': endpoint.scope ?? undefined,
    parameters: buildParameters(endpoint, schema),
    requestBody: request && {
      required: !z.safeParse(body, {}).success,
      content: json(request, { example: buildExample(request, components) }),
    },
    responses: {
      [success.status]: {
        description: success.description,
        headers: headerRefs(...COMMON_HEADERS, ...LIMIT_HEADERS, ...replayed),
        content: json(response, { example }),
      },
      ...errorResponses(endpoint, schema),
    },
  });
}

function webhook(type: EventType, schema: ToSchema): Json {
  const words = type.split(/[._]/).map(capitalize).join('');
  return {
    post: {
      operationId: `receive${words}`,
      tags: [WEBHOOKS],
      summary: type,
      description: 'Sent unless the `enabled_events` of the endpoint leave it out.',
      parameters: [
        {
          ...{ name: 'Service-Signature', in: 'header', required: true },
          description: 'Time and signatures, to be verified before anything is believed.',
          schema: { type: 'string' },
        },
        {
          ...{ name: 'Service-Event-Type', in: 'header', required: true },
          description: 'The type in the body, again.',
          schema: { const: type },
        },
      ],
      requestBody: {
        required: true,
        content: json(schema(buildEventSchema(type), 'output', `${words}Event`), {
          example: eventExample(type),
        }),
      },
      responses: { '2XX': { description: 'Acknowledged. Anything else is sent again.' } },
    },
  };
}

function eventExample(type: EventType): object {
  const ids = new Map<string, string>(Object.entries(SAMPLE_IDS));
  const fields = eventIds(type).map((name) => [name, ids.get(name.replace(/_id$/, ''))]);
  return {
    id: SAMPLE_IDS.event,
    ...{ type, created: SAMPLE_UPDATED, livemode: false },
    data: Object.fromEntries(fields),
  };
}

function capitalize(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}

function json(schema: Json, extra: Json): Json {
  return { 'application/json': omitUndefined({ schema, ...extra }) };
}

interface SchemaOptions {
  type: z.ZodType;
  io: 'input' | 'output';
  name: string | undefined;
  publicUrl: string;
}

function jsonSchema({ type, io, name, publicUrl }: SchemaOptions, components: Json): Json {
  const rawSchema = z.toJSONSchema(type, { io, unrepresentable: 'any' });
  const text = JSON.stringify(rawSchema)
    .replaceAll('#/$defs/', '#/components/schemas/')
    .replaceAll(SAMPLE_ORIGIN, publicUrl);
  const { $schema, $defs, ...rest } = z
    .looseObject({ $defs: z.record(z.string(), z.looseObject({})).optional() })
    .parse(JSON.parse(text));
  for (const [defName, { id: _, ...plain }] of Object.entries($defs ?? {})) {
    components[defName] = plain;
  }
  if (name === undefined || '$ref' in rest) return rest;
  components[name] = rest;
  return { $ref: `#/components/schemas/${name}` };
}

const Schema = z.looseObject({
  examples: z.array(z.unknown()).optional(),
  const: z.unknown().optional(),
  enum: z.array(z.unknown()).optional(),
  anyOf: z.array(z.looseObject({ type: z.unknown().optional() })).default([]),
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  properties: z.record(z.string(), z.looseObject({})).optional(),
  required: z.array(z.string()).default([]),
  items: z.looseObject({}).optional(),
});

/**
 * Builds examples from those of the fields; a field without one is null if allowed, its first
 * value, false, or a list of one item.
 * @param values differ from the schema's examples
 * @throws RangeError for a text or a number without an example
 */
function buildExample(json: Json, components: Json, values: Json = {}): unknown {
  const schema = Schema.parse(json);
  if (schema.examples !== undefined) return schema.examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const types = [schema.type, ...schema.anyOf.map(({ type }) => type)].flat();
  if (types.includes('null')) return null;
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace('#/components/schemas/', '');
    return buildExample(Schema.parse(components[name]), components, values);
  }
  if (schema.type === 'boolean') return false;
  if (schema.items !== undefined) return [buildExample(schema.items, components)];
  if (schema.type !== 'object') throw new RangeError(`No example in ${JSON.stringify(json)}`);
  const fields = Object.entries(schema.properties ?? {}).filter(
    ([name]) => schema.required.includes(name) || name in values,
  );
  return Object.fromEntries(
    fields.map(([name, field]) => [name, values[name] ?? buildExample(field, components)]),
  );
}

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

function errorTable(): string {
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

function errorResponses(endpoint: Endpoint, schema: ToSchema): Json {
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

function errorExamples(endpoints: readonly Endpoint[]): Json {
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
