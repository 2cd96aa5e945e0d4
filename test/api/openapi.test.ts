import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { ERROR_CODES } from '../../src/domain/errors';
import { EVENT_TYPES } from '../../src/domain/webhook/event';
import { ENDPOINTS } from '../../src/domain/wire';
import { fundAccount } from '../support/factories';
import type { Answer } from '../support/http';
import { useService } from '../support/service';
import { CREATES } from './create-setting';
import { openCryptoShop } from './crypto-setting';
import { ROUTES, withSomeId } from './routes-setting';

/** An operation of the document, or the document. */
type Json = Answer['body'];

const service = useService();
// The whole text is that of clients/openapi.json: test/clients/unit/generated.test.ts
let document: Json;

beforeAll(async () => {
  const response = await fetch(`${service.url}/openapi.json`);
  expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  document = await response.json();
});

const listOperations = (items: Json = document.paths) =>
  Object.entries<Json>(items).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, operation]) => ({
      ...{ path, operation },
      method: method.toUpperCase(),
    })),
  );

/** Lists the content of the body and of the answers of an operation. */
const listContents = ({ requestBody, responses }: Json): Json[] =>
  [requestBody, ...Object.values<Json>(responses)].flatMap(
    (each) => each?.content?.['application/json'] ?? [],
  );

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
  const references = findAll('$ref', document).map(String);
  expect(references.length).toBeGreaterThan(0);
  for (const reference of references) {
    const steps = reference.replace(/^#\//, '').split('/');
    const found = steps.reduce<Json>((at, step) => at?.[step], document);
    expect([reference, typeof found]).toEqual([reference, 'object']);
  }
  const { schemas, headers, examples } = document.components;
  for (const [kind, components] of Object.entries<Json>({ schemas, headers, examples })) {
    const names = Object.keys(components).map((name) => `#/components/${kind}/${name}`);
    expect(references).toEqual(expect.arrayContaining(names));
  }
  for (const schema of findAll('schema', document)) expect(() => compile(schema)).not.toThrow();
});

test('every operation has an id, a group, its path parameters, and named bodies', () => {
  const operationIds = listOperations().map(({ operation }) => operation.operationId);
  expect(new Set(operationIds).size).toBe(operationIds.length);
  const groups = document.tags.map(({ name }: Json) => name);
  for (const { path, operation } of listOperations()) {
    const { tags, parameters = [], responses } = operation;
    expect(groups).toContain(tags[0]);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = parameters
      .filter((each: Json) => each.in === 'path')
      .map(({ name }: Json) => name);
    expect([path, declared]).toEqual([path, inPath]);
    // Generated clients have words for them.
    for (const { schema } of listContents(operation)) {
      expect([path, schema]).toEqual([path, { $ref: expect.stringMatching(/^#.comp/) }]);
    }
    const isKeyed = parameters.some(({ name }: Json) => name === 'Idempotency-Key');
    expect([path, isKeyed]).toEqual([path, Object.hasOwn(responses, '201')]);
  }
});

test('every body, answer and parameter has an example that fits its schema', () => {
  const expectFit = (schema: unknown, example: unknown) => {
    const validate = compile(schema);
    const errors = validate(example) ? null : validate.errors;
    expect({ example, errors }).toEqual({ example, errors: null });
  };
  for (const { operation } of [...listOperations(), ...listOperations(document.webhooks)]) {
    const { operationId, parameters = [] } = operation;
    for (const { schema, example, examples = {} } of listContents(operation)) {
      const named = Object.keys(examples).map((name) => document.components.examples[name].value);
      const shown = example === undefined ? named : [example, ...named];
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

test('the operations are the routes of docs/api.md, each with its scope', () => {
  const operations = listOperations().map(({ method, path, operation }) => {
    return [method, path, operation['x-required-scope'] ?? null];
  });
  expect(operations).toEqual(expect.arrayContaining([...ROUTES]));
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
  ...['route_not_found', 'method_not_allowed', 'signature_invalid', 'callback_conflict'],
]);

test.each(Object.entries(ERROR_CODES))('the error code %s is documented', (code, { status }) => {
  const described = listOperations().flatMap(({ operation }) =>
    Object.entries<Json>(operation.responses)
      .filter(([, { description }]) => description.includes(`\`${code}\``))
      .map(([at]) => Number(at)),
  );
  expect([...new Set(described)]).toEqual(OF_NO_OPERATION.has(code) ? [] : [status]);
  expect(document.info.description).toContain(`| \`${code}\` | ${status} |`);
});

test('the webhooks are the 19 events of docs/webhooks.md', () => {
  expect(Object.keys(document.webhooks).sort()).toEqual([...EVENT_TYPES].sort());
  expect(EVENT_TYPES).toHaveLength(19);
});

describe('an example', () => {
  type Shop = Awaited<ReturnType<typeof openCryptoShop>>;
  let shop: Shop;
  beforeAll(async () => {
    shop = await openCryptoShop(service);
    await shop.registerWallet();
    await fundAccount(service, shop, { amount: 1_000_000 });
  });

  const readBody = (path: string, method = 'post') =>
    document.paths[path]?.[method]?.requestBody?.content['application/json'].example;
  /** Posts the example of a path with changes; returns the id of the resource. */
  const create = async (path: string, changes: object = {}): Promise<string> => {
    const { status, body, text } = await shop.post(path, { ...readBody(path), ...changes });
    if (status >= 400) throw new Error(`POST ${path}: ${text}`);
    return body.id;
  };
  const createAndReport = async (kind: string, event: string) => {
    const id = await create(`/v1/${kind}`);
    await shop.post(`/v1/sandbox/${kind}/${id}/simulate`, { event });
    return id;
  };
  const nameSettled = async () => ({ payment_id: await createAndReport('payments', 'settled') });
  const nameRecipient = async () => ({ recipient_id: await create('/v1/payout-recipients') });
  const creditCrypto = () => createAndReport('crypto/payments', 'received');
  /** Creates a resource in the state that its paths need, where its example alone does not. */
  const createFor: Record<string, () => Promise<string>> = {
    'crypto/settlements': async () => {
      await creditCrypto();
      const id = await create('/v1/crypto/settlements', { amount: '1000000000000000' });
      await service.becomes('crypto_settlements', id, { status: 'sent' });
      return id;
    },
    refunds: async () => create('/v1/refunds', await nameSettled()),
    payouts: async () => {
      const id = await create('/v1/payouts', await nameRecipient());
      await service.becomes('payouts', id, { status: 'sent' });
      return id;
    },
    events: async () => {
      const id = await create('/v1/payments');
      return (await shop.get(`/v1/events?resource_id=${id}`)).body.data[0].id;
    },
  };
  /** Creates what a path is about, or a payment. */
  const createResource = async (path: string) => {
    const [, name = ''] = /^\/v1\/(?:sandbox\/)?((?:crypto\/)?[\w-]+)/.exec(path) ?? [];
    const creates = document.paths[`/v1/${name}`]?.post === undefined ? 'payments' : name;
    return (await createFor[name]?.()) ?? (await create(`/v1/${creates}`));
  };

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
        // A payout may be read before it is sent, a settlement after that.
        .replace(/"status":"(?:created|submitted)"(.*"recipient_id")/, '"status":"sent"$1')
        .replace(
          /"status":"sent"(.*)"transaction_id":"transaction"/,
          '"status":"pending"$1"transaction_id":null',
        ),
    );

  test.each(ENDPOINTS.map((each) => [each.operation, each] as const))(
    'of %s succeeds, and is answered like its own answer',
    async (operation, { method, path, success }) => {
      const { responses, parameters = [] } = document.paths[path][method];
      const { example } = responses[success.status].content['application/json'];
      const ids =
        operation === 'createRefund'
          ? await nameSettled()
          : operation === 'createPayout' && (await nameRecipient());
      if (operation === 'createCryptoSettlement') await creditCrypto();
      const body = readBody(path, method);
      const ask = async (query: string) => {
        const id = path.includes('{id}') ? await createResource(path) : '';
        const to = `${path.replace('{id}', id)}${query}`;
        const answer = await shop.send(method.toUpperCase(), to, body && { ...body, ...ids });
        expect([query, answer.status, answer.text]).toEqual([query, success.status, answer.text]);
        return answer.body;
      };
      const query: string[] = parameters
        .filter(({ name, in: place }: Json) => place === 'query' && name !== 'after')
        .map(({ name, example: value }: Json) => `${name}=${encodeURIComponent(value)}`);
      if (query.length > 0) await ask(`?${query.join('&')}`);
      if (operation === 'listPaymentRefunds') return;
      if (operation.startsWith('list')) {
        // At least one row, also where this test runs alone.
        await createResource(path);
        const { data } = await ask('');
        expect(Object.keys(data[0])).toEqual(Object.keys(example.data[0]));
        return;
      }
      // How far the deliveries of an event are depends on the moment.
      const isEvent = operation === 'getEvent' || operation === 'redeliverEvent';
      const later = isEvent ? { deliveries: [], type: 'payment.settled' } : {};
      const answer = await ask('');
      expect(normalize({ ...answer, ...later })).toEqual(normalize({ ...example, ...later }));
    },
  );
});

/** Changes of a good body; the document and the API agree about each. */
const CHANGES: Record<string, object[]> = {
  payments: [
    { country: null, reference: null, customer: null, metadata: null },
    { customer: { email: 'a@b.nl', first_name: null }, metadata: { a: { b: [] } } },
    ...[{ success_url: 'http://a.b/' }, { customer: { phone: '1' } }, { method: undefined }],
  ],
  refunds: [
    ...[{ amount: 1, reason: null }, { amount: 1, reason: 'x'.repeat(500) }, { reason: 5 }],
    ...[{ reason: 'x'.repeat(501) }, { payment_id: undefined }, { payment_id: 'x'.repeat(101) }],
  ],
  payouts: [
    { reference: 'x'.repeat(255), metadata: { balance_account: 'marketing', a: { b: [] } } },
    ...[{ reference: null, metadata: null }, { amount: undefined }, { recipient_id: null }],
    ...[{ recipient_id: 'x'.repeat(101) }, { recipient_id: undefined }, { method: null }],
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
