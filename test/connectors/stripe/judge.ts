import type { startStripeMock } from '../../support/stripe-mock';
import { decodeForm, type startFakeStripe } from './fake';

type Mock = Awaited<ReturnType<typeof startStripeMock>>;
type Bank = Awaited<ReturnType<typeof startFakeStripe>>;
type Seen = Bank['requests'][number];

// biome-ignore lint/suspicious/noExplicitAny: a document of 8 MB.
type Schema = any;

/**
 * Holds all that a fake has seen and said against Stripe's own mock and OpenAPI document: requests,
 * answers, refusals too, and events.
 * @returns numbers by endpoint, and what is refused
 */
export async function judge({ requests, events }: Bank, { url, openApi }: Mock) {
  const { paths, components } = openApi();
  const find = createFinder(components.schemas);
  const counts: Record<string, number> = {};
  const faults = new Set<string>();
  const note = (what: string, found: readonly string[]): void => {
    counts[what] = (counts[what] ?? 0) + 1;
    for (const fault of found) faults.add(`${what}: ${fault}`);
  };
  for (const seen of requests) {
    const [address = '', query = ''] = seen.path.split('?');
    const place = address.replace(/\/[a-z]+_(test_)?\d{6}\w+/, '/{id}');
    const [, path] =
      Object.entries<Schema>(paths).find(
        ([template]) => template.replace(/\{\w+\}/, '{id}') === place,
      ) ?? [];
    const operation = path?.[seen.method.toLowerCase()];
    if (operation === undefined) {
      faults.add(`${seen.method} ${place} is unknown`);
      continue;
    }
    const sent = decodeForm(seen.method === 'GET' ? query : seen.body);
    note(`${seen.method} ${place}`, [
      ...(await ask(url, seen)),
      ...find(readRequestSchema(operation, seen.method), sent, 'sent'),
    ]);
    if (seen.answer === undefined) continue;
    const { status } = seen.answer;
    const body: unknown = JSON.parse(JSON.stringify(seen.answer.body));
    const { content } = operation.responses[status] ?? operation.responses.default;
    const found = find(content['application/json'].schema, body, 'answered');
    note(`${status} ${seen.method} ${place}`, found);
  }
  for (const event of events) {
    note(`event ${event['type']}`, find(components.schemas.event, event, 'answered'));
  }
  return { counts, faults: [...faults] };
}

/** Sends a request again, to stripe-mock, which refuses what its form does not allow. */
async function ask(url: string, { method, path, headers, body }: Seen): Promise<string[]> {
  const names = ['authorization', 'stripe-version', 'content-type', 'idempotency-key'];
  const own = names.flatMap((name) => (headers[name] ? [[name, headers[name]]] : []));
  const init = { method, headers: Object.fromEntries(own), ...(method === 'POST' ? { body } : {}) };
  const answer = await fetch(`${url}${path}`, init);
  const text = await answer.text();
  return answer.ok ? [] : [`stripe-mock: ${answer.status} ${text}`];
}

function readRequestSchema({ parameters = [], requestBody }: Schema, method: string): Schema {
  if (method !== 'GET') return requestBody.content['application/x-www-form-urlencoded'].schema;
  const properties = parameters.map((each: Schema) => [each.name, each.schema]);
  return { type: 'object', properties: Object.fromEntries(properties) };
}

/**
 * Finds fields that a schema does not have, values that it refuses, and required fields that an answer
 * lacks; stripe-mock knows those of requests.
 */
function createFinder(schemas: Schema) {
  const find = (schema: Schema, value: unknown, at: string): string[] => {
    if (schema.$ref !== undefined) return find(schemas[schema.$ref.split('/').at(-1)], value, at);
    if (at.endsWith('.data.object') && schema.properties === undefined) {
      // Of an event, which may be about anything.
      const { object } = Object(value);
      return find(schemas[object], value, `${at}:${object}`);
    }
    if (value === null) return schema.nullable === true ? [] : [`${at} is null`];
    if (schema.anyOf !== undefined) {
      const each: string[][] = schema.anyOf.map((one: Schema) => find(one, value, at));
      // The nearest one says what is wrong.
      return each.toSorted((a, b) => a.length - b.length)[0] ?? [];
    }
    if (schema.enum !== undefined && schema['x-stripeBypassValidation'] !== true) {
      if (!schema.enum.includes(value)) return [`${at} is ${value}`];
    }
    if (schema.type === 'object' || schema.type === 'array') return findInside(schema, value, at);
    if (schema.type === 'integer') {
      return Number.isInteger(Number(value)) ? [] : [`${at} is ${value}`];
    }
    const isText = typeof value === 'string' && value.length <= (schema.maxLength ?? 5_000);
    return schema.type !== 'string' || isText ? [] : [`${at} is no text`];
  };
  const findInside = (schema: Schema, value: unknown, at: string): string[] => {
    if (typeof value !== 'object') return [`${at} is no ${schema.type}`];
    const { required = [] } = at.startsWith('answered') ? schema : {};
    const missing: string[] = required.filter((name: string) => !(name in Object(value)));
    return [
      ...missing.map((name) => `${at}.${name} is missing`),
      ...Object.entries(Object(value)).flatMap(([name, each]) => {
        if (schema.items) return find(schema.items, each, `${at}[]`);
        const inner = schema.properties?.[name] ?? schema.additionalProperties;
        return inner ? find(inner, each, `${at}.${name}`) : [`${at}.${name} is unknown`];
      }),
    ];
  };
  return find;
}
