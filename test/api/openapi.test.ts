import { randomUUID } from 'node:crypto';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { z } from 'zod';
import { ERROR_CODES } from '../../src/domain/errors';
import { EVENT_TYPES } from '../../src/domain/webhook/event';
import { ENDPOINTS } from '../../src/domain/wire';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { CREATES } from './create-setting';
import { openCryptoShop } from './crypto-setting';
import { credit } from './payout-setting';
import { ROUTES, withSomeId } from './routes-setting';

/** OpenAPI 3.1, as far as this document uses it. */
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

const isDefined = <T>(value: T | undefined): value is T => value !== undefined;

const listOperations = () =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) =>
      operation === undefined ? [] : [{ path, method: method.toUpperCase(), operation }],
    ),
  );

/** Lists the content of the body and of the answers of an operation. */
const listContents = ({ requestBody, responses }: z.infer<typeof Operation>) =>
  [requestBody, ...Object.values(responses)]
    .map((each) => each?.content?.['application/json'])
    .filter(isDefined);

/** Finds every value under a name, at any depth. */
function findAll(name: string, within: unknown): unknown[] {
  if (typeof within !== 'object' || within === null) return [];
  return Object.entries(within).flatMap(([key, value]) => [
    ...(key === name ? [value] : []),
    ...findAll(name, value),
  ]);
}

const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true }));
const compiled = new Map<string, ValidateFunction>();
function compile(schema: unknown): ValidateFunction {
  const name = JSON.stringify(schema);
  const { components } = document;
  const validate = compiled.get(name) ?? ajv.compile({ ...Object(schema), components });
  compiled.set(name, validate);
  return validate;
}

test('every reference leads somewhere, every component is referred to, and every schema is valid', () => {
  const references = findAll('$ref', raw).map(String);
  expect(references.length).toBeGreaterThan(0);
  for (const reference of references) {
    const steps = reference.replace(/^#\//, '').split('/');
    const found = steps.reduce<unknown>((at, step) => Object(at)[step], document);
    expect([reference, typeof found]).toEqual([reference, 'object']);
  }
  const { schemas, headers, examples } = document.components;
  for (const [kind, components] of Object.entries({ schemas, headers, examples })) {
    for (const name of Object.keys(components)) {
      expect(references).toContain(`#/components/${kind}/${name}`);
    }
  }
  for (const schema of findAll('schema', raw)) expect(() => compile(schema)).not.toThrow();
});

test('every operation has an id, a group, its path parameters, and named bodies', () => {
  const operationIds = listOperations().map(({ operation }) => operation.operationId);
  expect(new Set(operationIds).size).toBe(operationIds.length);
  const groups = document.tags.map(({ name }) => name);
  for (const { path, operation } of listOperations()) {
    const { tags, parameters = [], responses } = operation;
    expect(groups).toContain(tags[0]);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = parameters.filter((each) => each.in === 'path').map(({ name }) => name);
    expect([path, declared]).toEqual([path, inPath]);
    // Generated clients have words for them.
    for (const { schema } of listContents(operation)) {
      expect([path, schema]).toEqual([path, { $ref: expect.stringMatching(/^#.comp/) }]);
    }
    const isKeyed = parameters.some(({ name }) => name === 'Idempotency-Key');
    expect([path, isKeyed]).toEqual([path, Object.hasOwn(responses, '201')]);
  }
});

test('every body, answer and parameter has an example that fits its schema', () => {
  const expectFit = (schema: unknown, example: unknown) => {
    const validate = compile(schema);
    const errors = validate(example) ? null : validate.errors;
    expect({ example, errors }).toEqual({ example, errors: null });
  };
  const all = [...Object.values(document.paths), ...Object.values(document.webhooks)];
  for (const operation of all.flatMap((item) => Object.values(item)).filter(isDefined)) {
    const { operationId, parameters = [] } = operation;
    for (const { schema, example, examples = {} } of listContents(operation)) {
      const named = Object.entries(examples).map(([name, each]) =>
        'value' in each ? each.value : Object(document.components.examples[name]).value,
      );
      const shown = [example, ...named].filter(isDefined);
      expect([operationId, shown.length > 0]).toEqual([operationId, true]);
      for (const each of shown) expectFit(schema, each);
    }
    for (const { name, example, schema } of parameters) {
      if (name === 'Idempotency-Key' || name.startsWith('Service-')) continue;
      expect([operationId, name, example]).not.toContain(undefined);
      expectFit(schema, example);
    }
  }
});

test('the operations are the routes of docs/api.md, each with its scope', async () => {
  const operations = listOperations().map(({ method, path }) => `${method} ${path}`);
  expect(operations).toEqual(
    expect.arrayContaining(ROUTES.map(([...row]) => row.slice(0, 2).join(' '))),
  );
  const { send } = await service.account({ scopes: [] });
  for (const { path, method, operation } of listOperations()) {
    const scope = operation['x-required-scope'];
    const { status, body } = await send(method, withSomeId(path));
    if (scope === undefined) expect([path, status]).toEqual([path, 200]);
    else {
      const message = expect.stringContaining(scope);
      expect([path, status, body.error.message]).toEqual([path, 403, message]);
    }
  }
});

test('a body is required exactly where a request without one is refused', async () => {
  const { send } = await openCryptoShop(service);
  const operations = listOperations().filter(({ operation }) => operation.requestBody);
  expect(operations.length).toBeGreaterThan(0);
  for (const { path, method, operation } of operations) {
    const { status } = await send(method, withSomeId(path));
    expect([path, operation.requestBody?.required]).toEqual([path, status === 400]);
  }
});

/** Codes of no operation of a merchant: of unknown paths, and of the callbacks of connectors. */
const OF_NO_OPERATION = new Set([
  'route_not_found',
  'method_not_allowed',
  'signature_invalid',
  'callback_conflict',
]);

test.each(Object.entries(ERROR_CODES))('the error code %s is documented', (code, { status }) => {
  const described = listOperations().flatMap(({ operation }) =>
    Object.entries(operation.responses)
      .filter(([, { description }]) => description.includes(`\`${code}\``))
      .map(([at]) => Number(at)),
  );
  expect(new Set(described.filter((at) => at !== status))).toEqual(new Set());
  expect(document.info.description).toContain(`| \`${code}\` | ${status} |`);
  expect(described.includes(status)).toBe(!OF_NO_OPERATION.has(code));
});

test('the webhooks are the events of docs/webhooks.md', () => {
  expect(Object.keys(document.webhooks).sort()).toEqual([...EVENT_TYPES].sort());
  expect(EVENT_TYPES).toHaveLength(19);
});

test.each(EVENT_TYPES)('the webhook %s has its headers and its body', (type) => {
  const { parameters, requestBody } = document.webhooks[type]?.post ?? {};
  const headers = Object.fromEntries(parameters?.map((each) => [each.name, each.schema]) ?? []);
  expect(headers).toEqual({
    'Service-Signature': { type: 'string' },
    'Service-Event-Type': { const: type },
  });
  const accepts = compile(requestBody?.content['application/json'].schema);
  const resource = type.split('.').slice(0, -1).join('_');
  const names = resource === 'refund' ? ['refund_id', 'payment_id'] : [`${resource}_id`];
  const data = Object.fromEntries(names.map((name) => [name, randomUUID()]));
  const created = '2026-03-01T12:34:56.789Z';
  const event = { id: `evt_${randomUUID()}`, type, created, livemode: false, data };
  expect(accepts(event)).toBe(true);
  for (const wrong of [
    { id: 'evt_1' },
    { type: 'payment.made' },
    { created: '2026-03-01' },
    { livemode: 'no' },
    { data: {} },
  ]) {
    expect([wrong, accepts({ ...event, ...wrong })]).toEqual([wrong, false]);
  }
});

describe('an example', () => {
  type Shop = Awaited<ReturnType<typeof openCryptoShop>>;
  let shop: Shop;
  beforeAll(async () => {
    shop = await openCryptoShop(service);
    await shop.registerWallet();
    await credit(service, shop, { amount: 1_000_000 });
  });

  const readExample = (path: string, method: 'post' | 'patch' = 'post') =>
    document.paths[path]?.[method]?.requestBody?.content['application/json'].example;
  /** Posts the example of a path with changes; returns the id of the resource. */
  const create = async (path: string, changes: object = {}): Promise<string> => {
    const { status, body, text } = await shop.post(path, { ...readExample(path), ...changes });
    if (status >= 400) throw new Error(`POST ${path}: ${text}`);
    return body.id;
  };
  const createSettled = async () => {
    const id = await create('/v1/payments');
    await shop.post(`/v1/sandbox/payments/${id}/simulate`, { event: 'settled' });
    return id;
  };
  const creditCrypto = async () => {
    const id = await create('/v1/crypto/payments');
    await shop.post(`/v1/sandbox/crypto/payments/${id}/simulate`, { event: 'received' });
  };
  const createRecipient = () => create('/v1/payout-recipients');
  /** Creates what a path with an id is about, and brings it to the state that it needs. */
  const createFor: [path: RegExp, create: () => Promise<string>][] = [
    [/crypto\/payments/, () => create('/v1/crypto/payments')],
    [
      /crypto\/settlements/,
      async () => {
        await creditCrypto();
        const id = await create('/v1/crypto/settlements', { amount: '1000000000000000' });
        await service.becomes('crypto_settlements', id, { status: 'sent' });
        return id;
      },
    ],
    [
      /^\/v1\/(?:sandbox\/)?refunds/,
      async () => create('/v1/refunds', { payment_id: await createSettled() }),
    ],
    [
      /payouts/,
      async () => {
        const id = await create('/v1/payouts', { recipient_id: await createRecipient() });
        await service.becomes('payouts', id, { status: 'sent' });
        return id;
      },
    ],
    [/payout-recipients/, createRecipient],
    [
      /events/,
      async () => {
        const id = await create('/v1/payments');
        return (await shop.get(`/v1/events?resource_id=${id}`)).body.data[0].id;
      },
    ],
    [/webhook-endpoints/, () => create('/v1/webhook-endpoints')],
    [/./, () => create('/v1/payments')],
  ];
  const createResource = async (path: string) =>
    await (createFor.find(([pattern]) => pattern.test(path))?.[1] ?? createSettled)();

  /** Replaces in an answer what differs each time. */
  const normalize = (answer: unknown): unknown =>
    JSON.parse(
      JSON.stringify(answer)
        .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'id')
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
        .replaceAll(/whsec_[\w-]{43}/g, 'secret')
        .replaceAll(/0x[0-9a-f]{64}/gi, 'transaction')
        .replaceAll(/0x[0-9a-f]{40}/gi, 'address')
        .replaceAll(/(pay\/(?:crypto\/)?)[\w-]{43}/g, '$1token')
        .replaceAll(/@\d+\?/g, '@chain?')
        .replaceAll(/"\d{3,}"/g, '"units"')
        // A settlement may be sent before it is read.
        .replace(
          /"status":"sent"(.*)"transaction_id":"transaction"/,
          '"status":"pending"$1"transaction_id":null',
        ),
    );
  /** How far the deliveries of an event are depends on the moment. */
  const dropDeliveries = ({ deliveries: _, ...fields }: Record<string, unknown> = {}) => ({
    ...fields,
    type: 'payment.settled',
  });

  test.each(ENDPOINTS.map((each) => [each.operation, each] as const))(
    'of %s succeeds, and is answered like its own answer',
    async (operation, { method, path, success }) => {
      const { responses, requestBody, parameters = [] } = document.paths[path]?.[method] ?? {};
      const { example } = responses?.[success.status]?.content?.['application/json'] ?? {};
      const ids =
        operation === 'createRefund'
          ? { payment_id: await createSettled() }
          : operation === 'createPayout' && { recipient_id: await createRecipient() };
      if (operation === 'createCryptoSettlement') await creditCrypto();
      const body = requestBody?.content['application/json'].example;
      const sent = body && { ...body, ...ids };
      const ask = async (query = '') => {
        const id = path.includes('{id}') ? await createResource(path) : '';
        const to = `${path.replace('{id}', id)}${query}`;
        // On a busy machine a payout may be answered before its bank has it.
        const answer = await eventually('an answer with the status of the bank', async () => {
          const last =
            method === 'post'
              ? await shop.post(to, sent)
              : await shop.send(method.toUpperCase(), to, sent);
          const isEarly = operation === 'createPayout' && last.body.status !== 'sent';
          return last.status < 400 && isEarly ? undefined : last;
        });
        expect([query, answer.status, answer.text]).toEqual([query, success.status, answer.text]);
        return answer.body;
      };
      const query = parameters.flatMap((each) =>
        each.in === 'query' && each.name !== 'after'
          ? [`${each.name}=${encodeURIComponent(`${each.example}`)}`]
          : [],
      );
      if (query.length > 0) await ask(`?${query.join('&')}`);
      if (operation === 'listPaymentRefunds') return;
      if (operation.startsWith('list')) {
        // At least one row, also where this test runs alone.
        await createResource(path);
        const { data } = await ask();
        expect(Object.keys(data[0])).toEqual(Object.keys(Object(example?.['data'])[0]));
        return;
      }
      const isEvent = operation === 'getEvent' || operation === 'redeliverEvent';
      const answer = await ask();
      if (isEvent)
        expect(normalize(dropDeliveries(answer))).toEqual(normalize(dropDeliveries(example)));
      else expect(normalize(answer)).toEqual(normalize(example));
    },
  );
});

/** Changes of a good body; the document and the API agree about each. */
const CHANGES: Record<string, object[]> = {
  payments: [
    { country: null, reference: null, customer: null, metadata: null },
    { customer: { email: 'a@b.nl', first_name: null }, metadata: { a: { b: [] } } },
    { success_url: 'http://a.b/' },
    { customer: { phone: '1' } },
    { method: undefined },
  ],
  refunds: [
    { amount: 1 },
    { amount: 1, reason: null },
    { amount: 1, reason: 'x'.repeat(500) },
    { amount: 1, reason: 'x'.repeat(501) },
    { amount: 1, reason: 5 },
    { payment_id: null, amount: 1 },
    { payment_id: undefined, amount: 1 },
  ],
  payouts: [
    { reference: null, metadata: null },
    { reference: 'x'.repeat(255), metadata: { balance_account: 'marketing', a: { b: [] } } },
    { amount: undefined },
    { recipient_id: null },
    { recipient_id: undefined },
    { method: null },
    { fee: 0 },
  ],
};
const OF_ALL = [
  ...[{}, { amount: 10.5 }, { amount: 0 }, { amount: '5' }, { currency: 'eur' }, { extra: 1 }],
  ...[{ reference: 'x'.repeat(256) }, { reference: 5 }, { metadata: [] }],
];

test.each(CREATES)(
  'the API accepts exactly the bodies of $name that the document allows',
  async ({ name, operation, path, open }) => {
    const validate = compile({ $ref: `#/components/schemas/C${operation.slice(1)}` });
    const creator = await open(service);
    const changes = [...OF_ALL, ...(CHANGES[name] ?? [])];
    for (const body of [{}, ...changes.map((change) => ({ ...creator.body, ...change }))]) {
      const sent: unknown = JSON.parse(JSON.stringify(body));
      const { status } = await creator.post(path, sent);
      expect({ sent, allowed: validate(sent) }).toEqual({ sent, allowed: status === 201 });
    }
  },
);
