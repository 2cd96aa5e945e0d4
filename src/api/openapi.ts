import { z } from 'zod';
import { omitUndefined } from '../domain/defined';
import { buildEventSchema, EVENT_TYPES, type EventType, eventIds } from '../domain/webhook/event';
import { ENDPOINTS } from '../domain/wire';
import type { Endpoint } from '../domain/wire/endpoint';
import { SAMPLE_IDS, SAMPLE_ORIGIN, SAMPLE_UPDATED } from '../domain/wire/samples';
import { errorExamples, errorResponses, errorTable } from './openapi-errors';
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
