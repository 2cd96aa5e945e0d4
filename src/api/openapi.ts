import { z } from 'zod';
import { defined } from '../domain/defined';
import { EVENT_TYPES, type EventType, webhookEventOf } from '../domain/event';
import { ENDPOINTS } from '../domain/wire';
import type { Endpoint } from '../domain/wire/endpoint';
import { answerExamples } from './openapi-answers';
import { errorExamples, errorResponses, errorTable } from './openapi-errors';
import { BODY_EXAMPLES, eventExample, sampleIdOf } from './openapi-examples';
import { linksOf } from './openapi-links';
import {
  ALWAYS,
  HEADERS,
  headerRefs,
  type Json,
  LIMITS,
  parametersOf,
  TAG_LIST,
  type ToSchema,
  tagOf,
  WEBHOOKS,
} from './openapi-parts';

/** Date of the contract, on every answer as `Service-Version`. `/v1` changes only by addition. */
export const SERVICE_VERSION = '2026-11-21';

/** OpenAPI 3.1 document, made of the schemas that validate. */
export function openApiDocument(publicUrl: string): Json {
  const components: Json = {};
  const schema: ToSchema = (type, io, name) => jsonSchema({ type, io, name }, components);
  const answers = answerExamples(publicUrl);
  const paths: Record<string, Json> = {};
  for (const endpoint of ENDPOINTS) {
    paths[endpoint.path] = {
      ...paths[endpoint.path],
      [endpoint.method]: operation(endpoint, schema, answers[endpoint.operation]),
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

function operation(endpoint: Endpoint, schema: ToSchema, answer: object | undefined): Json {
  const { success, creates, body } = endpoint;
  const replayed = creates ? ['Idempotent-Replayed'] : [];
  const name = capitalised(endpoint.operation);
  return defined({
    operationId: endpoint.operation,
    tags: [tagOf(endpoint.path)],
    summary: endpoint.summary,
    description: endpoint.description,
    'x-required-scope': endpoint.scope ?? undefined,
    parameters: parametersOf(endpoint, schema, sampleIdOf(endpoint.path)),
    requestBody: body && {
      required: isNeeded(body),
      content: json(schema(body, 'input', name), { examples: BODY_EXAMPLES[endpoint.operation] }),
    },
    responses: {
      [success.status]: defined({
        description: success.description,
        headers: headerRefs(...ALWAYS, ...LIMITS, ...replayed),
        content: json(schema(success.schema, 'output'), { example: answer }),
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

function webhook(type: EventType, schema: ToSchema): Json {
  const words = type.split(/[._]/).map(capitalised).join('');
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
        content: json(schema(webhookEventOf(type), 'output', `${words}Event`), {
          example: eventExample(type),
        }),
      },
      responses: { '2XX': { description: 'Acknowledged. Anything else is sent again.' } },
    },
  };
}

function capitalised(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}

function json(schema: Json, shown: Json): Json {
  return { 'application/json': defined({ schema, ...shown }) };
}

interface Wanted {
  type: z.ZodType;
  io: 'input' | 'output';
  /** Name of an object that has none of its own. */
  name: string | undefined;
}

/** Named schemas become components; the rest stands in place. */
function jsonSchema({ type, io, name }: Wanted, components: Json): Json {
  const made = z.toJSONSchema(type, { io, unrepresentable: 'any' });
  const text = JSON.stringify(made).replaceAll('#/$defs/', '#/components/schemas/');
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
