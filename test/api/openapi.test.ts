import { randomUUID } from 'node:crypto';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { z } from 'zod';
import { ERROR_CODES } from '../../src/domain/errors';
import { call } from '../support/http';
import { useService } from '../support/service';
import { ROUTES } from './routes-setting';

/** OpenAPI 3.1 as its specification says it, as far as this document uses it. */
const Schema = z.union([z.boolean(), z.looseObject({})]);
const Ref = z.strictObject({ $ref: z.string() });
const Example = z.union([
  Ref,
  z.strictObject({ summary: z.string().optional(), value: z.looseObject({}) }),
]);
const Content = z.strictObject({
  'application/json': z.strictObject({
    schema: Schema,
    example: z.looseObject({}).optional(),
    examples: z.record(z.string(), Example).optional(),
  }),
});
const Parameter = z
  .strictObject({
    name: z.string(),
    in: z.enum(['path', 'query', 'header', 'cookie']),
    required: z.boolean().optional(),
    description: z.string(),
    example: z.unknown().optional(),
    schema: Schema,
  })
  .refine((each) => each.in !== 'path' || each.required === true);
const Operation = z.strictObject({
  operationId: z.string(),
  tags: z.tuple([z.string()]),
  summary: z.string(),
  description: z.string(),
  'x-required-scope': z.string().optional(),
  parameters: z.array(Parameter).optional(),
  requestBody: z.strictObject({ required: z.boolean().optional(), content: Content }).optional(),
  responses: z.record(
    z.string().regex(/^([1-5]\d\d|[1-5]XX|default)$/),
    z.strictObject({
      description: z.string(),
      headers: z.record(z.string(), Ref).optional(),
      content: Content.optional(),
    }),
  ),
});
const PathItem = z.strictObject({
  get: Operation.optional(),
  post: Operation.optional(),
  patch: Operation.optional(),
  delete: Operation.optional(),
});
const Document = z.strictObject({
  openapi: z.string().regex(/^3\.1\.\d+$/),
  info: z.strictObject({
    title: z.string(),
    version: z.string(),
    license: z.strictObject({ name: z.string(), identifier: z.string() }),
    description: z.string(),
  }),
  servers: z.array(z.strictObject({ url: z.url() })).min(1),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  tags: z.array(z.strictObject({ name: z.string(), description: z.string() })),
  paths: z.record(z.string().regex(/^\//), PathItem),
  webhooks: z.record(z.string(), PathItem),
  components: z.strictObject({
    schemas: z.record(z.string().regex(/^[\w.-]+$/), Schema),
    examples: z.record(z.string(), Example),
    headers: z.record(z.string(), z.strictObject({ description: z.string(), schema: Schema })),
    securitySchemes: z.record(
      z.string(),
      z.strictObject({
        type: z.literal('http'),
        scheme: z.literal('bearer'),
        description: z.string(),
      }),
    ),
  }),
});

const service = useService();
let raw: unknown;
let document: z.infer<typeof Document>;

beforeAll(async () => {
  const response = await fetch(`${service.url}/openapi.json`);
  expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  raw = await response.json();
  document = Document.parse(raw);
});

const operations = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) =>
      operation === undefined ? [] : [{ path, method, operation }],
    ),
  );

function isThere<T>(value: T | undefined): value is T {
  return value !== undefined;
}

/** Every value under this name, wherever it stands. */
function findAll(name: string, within: unknown): unknown[] {
  if (typeof within !== 'object' || within === null) return [];
  return Object.entries(within).flatMap(([key, value]) => [
    ...(key === name ? [value] : []),
    ...findAll(name, value),
  ]);
}

test('every reference leads somewhere, and every component is referred to', () => {
  const references = findAll('$ref', raw).map(String);
  expect(references.length).toBeGreaterThan(0);
  for (const reference of references) {
    const found = reference
      .replace(/^#\//, '')
      .split('/')
      .reduce<unknown>((at, step) => Object(at)[step], document);
    expect([reference, typeof found]).toEqual([reference, 'object']);
  }
  for (const [kind, names] of Object.entries({
    schemas: Object.keys(document.components.schemas),
    headers: Object.keys(document.components.headers),
    examples: Object.keys(document.components.examples),
  })) {
    for (const name of names) expect(references).toContain(`#/components/${kind}/${name}`);
  }
});

test('every schema is JSON Schema 2020-12', () => {
  const ajv = addFormats(new Ajv2020({ strict: false }));
  const { components } = document;
  for (const schema of findAll('schema', raw)) {
    expect(() => ajv.compile({ ...Object(schema), components })).not.toThrow();
  }
});

test('operation ids are unique, and the parameters of each path are declared', () => {
  const ids = operations().map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).not.toContain(undefined);
  for (const { path, operation } of operations()) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = (operation.parameters ?? [])
      .filter((each) => each.in === 'path')
      .map(({ name }) => name);
    expect([path, declared]).toEqual([path, inPath]);
  }
});

test('bodies and answers are named, so that generated clients have words for them', () => {
  const groups = document.tags.map(({ name }) => name);
  for (const { path, operation } of operations()) {
    const { tags, requestBody, responses } = operation;
    expect(groups).toContain(tags[0]);
    for (const { content } of [requestBody, ...Object.values(responses)].filter(isThere)) {
      const { schema } = content?.['application/json'] ?? {};
      expect([path, schema]).toEqual([path, { $ref: expect.stringMatching(/^#.comp/) }]);
    }
  }
});

test('every example fits the schema that it stands beside', () => {
  const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true }));
  const { components } = document;
  const compiled = new Map<string, ValidateFunction>();
  const fits = (schema: unknown, example: unknown) => {
    const name = JSON.stringify(schema);
    const validate = compiled.get(name) ?? ajv.compile({ ...Object(schema), components });
    compiled.set(name, validate);
    const isFit = validate(example);
    expect({ example, errors: isFit ? null : validate.errors }).toEqual({ example, errors: null });
  };
  const shownIn = ({ example, examples = {} }: z.infer<typeof Content>['application/json']) => {
    const listed = Object.entries(examples).map(([name, shown]) =>
      'value' in shown ? shown.value : Object(components.examples[name]).value,
    );
    return example === undefined ? listed : [example, ...listed];
  };
  const all = [...Object.values(document.paths), ...Object.values(document.webhooks)];
  for (const item of all.flatMap((path) => Object.values(path)).filter(isThere)) {
    for (const { content } of [item.requestBody, ...Object.values(item.responses)].filter(
      isThere,
    )) {
      if (content === undefined) continue;
      const media = content['application/json'];
      const shown = shownIn(media);
      expect([item.operationId, shown.length > 0]).toEqual([item.operationId, true]);
      for (const example of shown) fits(media.schema, example);
    }
    for (const { name, example, schema } of item.parameters ?? []) {
      if (name === 'Idempotency-Key' || name.startsWith('Service-')) continue;
      expect([item.operationId, name, example]).not.toContain(undefined);
      fits(schema, example);
    }
  }
});

test('every operation that docs/api.md describes is there', () => {
  expect(operations().map(({ method, path }) => `${method} ${path}`)).toEqual(
    expect.arrayContaining(ROUTES.map(([method, path]) => `${method.toLowerCase()} ${path}`)),
  );
});

test('every documented operation is reachable, and says which scope it asks for', async () => {
  const { key } = await service.account({ scopes: [] });
  for (const { path, method, operation } of operations()) {
    const to = path.replaceAll(/\{\w+\}/g, 'some-id');
    const scope = operation['x-required-scope'];
    const { status, body } = await call(service.url, method.toUpperCase(), to, { key });
    if (scope === undefined) expect([to, status]).toEqual([to, 200]);
    else
      expect([to, status, body.error.message]).toEqual([to, 403, expect.stringContaining(scope)]);
  }
});

test('creating operations ask for an Idempotency-Key, and only they', () => {
  for (const { path, operation } of operations()) {
    const asks = operation.parameters?.some(({ name }) => name === 'Idempotency-Key') ?? false;
    expect([path, asks]).toEqual([path, Object.hasOwn(operation.responses, '201')]);
  }
});

test('a body is required where a request without one is refused, and nowhere else', async () => {
  const { account_id, key } = await service.account();
  await service.stores.accounts.setCrypto(account_id, true);
  const bodies = operations().filter(({ operation }) => operation.requestBody !== undefined);
  expect(bodies.length).toBeGreaterThan(0);
  for (const { path, method, operation } of bodies) {
    const to = path.replaceAll(/\{\w+\}/g, 'some-id');
    const { status } = await call(service.url, method.toUpperCase(), to, { key });
    expect([to, operation.requestBody?.required]).toEqual([to, status === 400]);
  }
});

/** Codes of what is no merchant's operation: unknown paths, and the connectors' door. */
const OF_NO_OPERATION = new Set([
  'route_not_found',
  'method_not_allowed',
  'signature_invalid',
  'callback_conflict',
]);

test.each(Object.entries(ERROR_CODES))('the error code %s is documented', (code, { status }) => {
  const described = operations().flatMap(({ operation }) =>
    Object.entries(operation.responses)
      .filter(([, { description }]) => description.includes(`\`${code}\``))
      .map(([at]) => Number(at)),
  );
  expect(new Set(described.filter((at) => at !== status))).toEqual(new Set());
  expect(document.info.description).toContain(`| \`${code}\` | ${status} |`);
  expect(described.includes(status)).toBe(!OF_NO_OPERATION.has(code));
});

/** Ids that the data of an event holds, by the first words of its type. */
function idsOf(type: string): string[] {
  if (type.startsWith('refund.')) return ['refund_id', 'payment_id'];
  return [`${type.split('.').slice(0, -1).join('_')}_id`];
}

test('every event of docs/webhooks.md#events is a webhook with its headers and its body', () => {
  expect(Object.keys(document.webhooks).sort()).toEqual([
    'crypto.payment.expired',
    'crypto.payment.held',
    'crypto.payment.received',
    'crypto.payment.underpaid',
    'crypto.settlement.completed',
    'crypto.settlement.failed',
    'payment.authorized',
    'payment.awaiting_customer',
    'payment.cancelled',
    'payment.expired',
    'payment.failed',
    'payment.settled',
    'payout.completed',
    'payout.failed',
    'payout.returned',
    'payout.sent',
    'payout.submitted',
    'refund.failed',
    'refund.settled',
  ]);
  for (const [type, { post }] of Object.entries(document.webhooks)) {
    const headers = Object.fromEntries(post?.parameters?.map((p) => [p.name, p.schema]) ?? []);
    expect(headers).toEqual({
      'Service-Signature': { type: 'string' },
      'Service-Event-Type': { const: type },
    });
    const accepts = addFormats(new Ajv2020({ strict: false })).compile({
      ...Object(post?.requestBody?.content['application/json'].schema),
      components: document.components,
    });
    const data = Object.fromEntries(idsOf(type).map((id) => [id, randomUUID()]));
    const created = '2026-03-01T12:34:56.789Z';
    const event = { id: `evt_${randomUUID()}`, type, created, livemode: false, data };
    expect(accepts(event)).toBe(true);
    for (const wrong of [
      { ...event, id: 'evt_1' },
      { ...event, type: 'payment.made' },
      { ...event, created: '2026-03-01' },
      { ...event, livemode: 'no' },
      { ...event, data: {} },
    ]) {
      expect([wrong, accepts(wrong)]).toEqual([wrong, false]);
    }
  }
});
