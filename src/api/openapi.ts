import { z } from 'zod';
import { omitUndefined } from '../domain/defined';
import { ERROR_CODES, ErrorBody, type ErrorCode, type ErrorDetail } from '../domain/errors';
import {
  buildEventSchema,
  DEFAULT_EVENT_TYPES,
  EVENT_TYPES,
  type EventType,
  eventIds,
} from '../domain/events/event';
import { ENDPOINTS } from '../domain/wire';
import type { Endpoint } from '../domain/wire/endpoint';
import { SAMPLE_IDS, SAMPLE_ORIGIN, SAMPLE_UPDATED } from '../domain/wire/samples';

type Json = { [key: string]: unknown };

type ToSchema = (type: z.ZodType, io: 'input' | 'output', name?: string) => Json;

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
    const existing = ofType.get(key);
    if (existing !== undefined) return existing;
    const text = JSON.stringify(z.toJSONSchema(type, { io, unrepresentable: 'any' }))
      .replaceAll('#/$defs/', '#/components/schemas/')
      .replaceAll(SAMPLE_ORIGIN, publicUrl);
    const { $schema, $defs, ...rest } = z
      .looseObject({ $defs: z.record(z.string(), z.looseObject({})).optional() })
      .parse(JSON.parse(text));
    for (const [defName, { id: _, ...plain }] of Object.entries($defs ?? {})) {
      components[defName] = plain;
    }
    const isNamed = name !== undefined && !('$ref' in rest);
    if (isNamed) components[name] = rest;
    const json = isNamed ? { $ref: `#/components/schemas/${name}` } : rest;
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
  const errors = Object.entries(ERROR_CODES).map(
    ([code, { status, type }]) => `| \`${code}\` | ${status} | \`${type}\` |`,
  );
  const table = ['| `error.code` | Status | `error.type` |', '|---|---|---|', ...errors];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Payments',
      version: SERVICE_VERSION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'Amounts are integers in minor units. The webhook is the only authoritative signal of ' +
        'success: landing on `success_url` is no proof of payment.\n\n' +
        table.join('\n'),
    },
    servers: [{ url: publicUrl }],
    security: [{ apiKey: [] }],
    tags: TAG_LIST,
    paths,
    webhooks: Object.fromEntries(EVENT_TYPES.map((type) => [type, webhook(type, schema)])),
    components: {
      schemas: components,
      examples: errorExamples(),
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
  const tag = TAGS.find(([, , paths]) => paths.test(endpoint.path));
  if (tag === undefined) throw new RangeError(`No tag for ${endpoint.path}`);
  const response = schema(success.schema, 'output');
  const replayed = creates ? ['Idempotent-Replayed'] : [];
  const example = buildExample(response, components, success.example);
  const request = body && schema(body, 'input', capitalize(endpoint.operation));
  return omitUndefined({
    operationId: endpoint.operation,
    tags: [tag[0]],
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
  const ids = new Map<string, string>(Object.entries(SAMPLE_IDS));
  const data = eventIds(type).map((name) => [name, ids.get(name.replace(/_id$/, ''))]);
  const event = { id: SAMPLE_IDS.event, type, created: SAMPLE_UPDATED, livemode: false };
  const example = { ...event, data: Object.fromEntries(data) };
  const isDefault = DEFAULT_EVENT_TYPES.some((one) => one === type);
  return {
    post: {
      operationId: `receive${words}`,
      tags: [WEBHOOKS],
      summary: type,
      description: isDefault
        ? 'Sent unless the `enabled_events` of the endpoint leave it out.'
        : 'Sent only where the `enabled_events` of the endpoint name it.',
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
        content: json(schema(buildEventSchema(type), 'output', `${words}Event`), { example }),
      },
      responses: { '2XX': { description: 'Acknowledged. Anything else is sent again.' } },
    },
  };
}

function capitalize(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}

function json(schema: Json, extra: Json): Json {
  return { 'application/json': omitUndefined({ schema, ...extra }) };
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

function listCodes(endpoint: Endpoint): ReadonlySet<ErrorCode> {
  return new Set<ErrorCode>([
    ...COMMON,
    ...(endpoint.scope === null ? [] : (['api_key_scope_insufficient'] as const)),
    ...(endpoint.method === 'get' ? [] : (['account_frozen'] as const)),
    ...(endpoint.query || endpoint.body ? (['invalid_request'] as const) : []),
    ...(endpoint.body ? WITH_BODY : []),
    ...(endpoint.creates ? CREATING : []),
    ...(endpoint.crypto ? (['crypto_not_enabled'] as const) : []),
    ...(endpoint.sandboxOnly ? (['sandbox_only'] as const) : []),
    ...(endpoint.codes ?? []),
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

function errorExamples(): Json {
  const message = 'Says for a person what is wrong. Act on the code: the words may change.';
  const request_id = '3f1f0c9e-8a54-4b1d-9f0e-5d2c7a6b8e10';
  const codes = new Set(ENDPOINTS.flatMap((endpoint) => [...listCodes(endpoint)]));
  const examples = [...codes].map((code) => {
    const details = DETAILS[code];
    const { type } = ERROR_CODES[code];
    const error = { type, code, message, ...(details && { details: [details] }), request_id };
    return [code, { value: { error } }];
  });
  return Object.fromEntries(examples);
}

const COUNT = { type: 'string', pattern: '^\\d+$' };

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
  'Retry-After': { description: 'Seconds.', schema: COUNT },
  'RateLimit-Limit': { description: 'Requests in a window.', schema: COUNT },
  'RateLimit-Remaining': { description: 'Requests left in this window.', schema: COUNT },
  'RateLimit-Reset': { description: 'Seconds until the window ends.', schema: COUNT },
};

const LIMIT_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];
const COMMON_HEADERS = ['Request-Id', 'Service-Version'];

function headerRefs(...names: string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const WEBHOOKS = 'Webhooks';

const TAGS = [
  ['Payments', 'Take money from customers.', /^\/v1\/payments/],
  ['Refunds', 'Send it back to them.', /^\/v1\/refunds/],
  ['Disputes', 'Answer what a bank disputes.', /^\/v1\/disputes/],
  ['Payouts', 'Pay recipients out of a balance.', /^\/v1\/payout/],
  ['Balances', 'What you have, and every change of it.', /^\/v1\/balance/],
  ['Events', 'What happened, also while you were away.', /^\/v1\/events/],
  ['Webhook endpoints', 'Where events are sent.', /^\/v1\/webhook-endpoints/],
  ['Requests', 'What you sent, and what was answered.', /^\/v1\/requests/],
  ['Catalogue', 'Payment methods and their rules.', /^\/v1\/payment-methods/],
  ['Crypto', 'Crypto payments, where they are enabled.', /^\/v1\/crypto/],
  ['Sandbox', 'Let the sandbox bank and chain act.', /^\/v1\/sandbox/],
] as const;

const TAG_LIST: readonly Json[] = [
  ...TAGS.map(([name, description]) => ({ name, description })),
  { name: WEBHOOKS, description: 'Events that are posted to you.' },
];

interface Words {
  description: string;
  /** By default the first value of the schema. */
  example?: unknown;
}

const PARAMETERS: Readonly<Record<string, Words>> = {
  id: { description: 'Id that the service gave it.' },
  limit: { description: 'Rows of a page; 25 when left out.', example: 25 },
  status: { description: 'Only those in this state.' },
  method: { description: 'Only those by this method.' },
  reference: { description: 'Only those with exactly this reference.', example: 'order-1001' },
  payment_id: { description: 'Only those of this payment.', example: SAMPLE_IDS.payment },
  balance_account: { description: 'Only those of this balance account.', example: 'main' },
  currency: { description: 'Only those in this currency.', example: 'EUR' },
  asset: { description: 'Only those in this asset.' },
  type: { description: 'Only those of this type.' },
  resource_id: {
    description: 'Only those with this id in their data.',
    example: SAMPLE_IDS.payment,
  },
  after: {
    description:
      'Oldest first, the events after this one. The last `next_cursor` goes on from there.',
    example: SAMPLE_IDS.event,
  },
  created_before: {
    description:
      'Only those made before this time. The last `next_cursor` goes on from there: as text, since ' +
      'most date types cut its nine fractional digits.',
    example: '2026-03-01T12:34:56.789000042Z',
  },
};

/** No example: a tool that sends the same key with every body would be refused. */
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description:
    'Unique per operation, valid 24 hours; a UUID does well. A retry returns the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
};

const OWNERS = [
  ['/crypto/payments/', SAMPLE_IDS.crypto_payment],
  ['/crypto/settlements/', SAMPLE_IDS.crypto_settlement],
  ['/payments/', SAMPLE_IDS.payment],
  ['/refunds/', SAMPLE_IDS.refund],
  ['/disputes/', SAMPLE_IDS.dispute],
  ['/payouts/', SAMPLE_IDS.payout],
  ['/payout-recipients/', SAMPLE_IDS.recipient],
  ['/events/', SAMPLE_IDS.event],
  ['/webhook-endpoints/', SAMPLE_IDS.webhook_endpoint],
] as const;

function buildParameters(endpoint: Endpoint, schema: ToSchema): Json[] {
  const [, id] = OWNERS.find(([part]) => endpoint.path.includes(part)) ?? [];
  const toParameters = (place: string, type: z.ZodObject | undefined) =>
    Object.entries(type?.shape ?? {}).map(([name, field]) => {
      const fieldSchema = schema(field, 'output');
      const words = PARAMETERS[name];
      if (words === undefined) throw new RangeError(`No words for the parameter ${name}`);
      const { description, example = name === 'id' ? id : [fieldSchema['enum']].flat()[0] } = words;
      const required = place === 'path';
      return { name, in: place, required, description, example, schema: fieldSchema };
    });
  return [
    ...toParameters('path', endpoint.params),
    ...toParameters('query', endpoint.query),
    ...(endpoint.creates ? [IDEMPOTENCY_KEY] : []),
  ];
}
