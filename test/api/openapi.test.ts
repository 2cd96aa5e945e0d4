import { once } from 'node:events';
import { createServer } from 'node:http';
import Router from '@koa/router';
import { Client, Connection } from '@temporalio/client';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import Koa from 'koa';
import type { MongoClient } from 'mongodb';
import { mountHealth } from '../../src/api/app';
import { connectMongo } from '../../src/base/mongo';
import type { Env } from '../../src/domain/environment';
import { ERROR_CODES, type ErrorCode } from '../../src/domain/errors';
import { DEFAULT_EVENT_TYPES, EVENT_TYPES } from '../../src/domain/events/event';
import { SCOPES } from '../../src/domain/merchants/api-key';
import { ENDPOINTS } from '../../src/domain/wire';
import { createStores } from '../../src/store';
import { connectTemporal } from '../../src/temporal/access';
import { createTemporalClient } from '../../src/temporal/client';
import { useDatabase } from '../support/database';
import { eventually } from '../support/eventually';
import { buildAccount, buildEndpoint, fundAccount } from '../support/factories';
import { useFixture } from '../support/fixture';
import { type Answer, call } from '../support/http';
import { getPort } from '../support/product';
import { mongodbUri, sharedProduct, temporalAddress } from '../support/servers';
import { useAccount, useService } from '../support/service';
import { storeResources } from '../support/stored-resources';
import { CREATES } from './create-setting';
import { openCryptoShop } from './crypto-setting';
import { exchange } from './exchange';
import { cardRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';

/** An operation of the document, or the document. */
type Json = Answer['body'];

/** Every route of merchants, with the scope that it asks for: clients/openapi.json shows a change. */
const ROUTES = ENDPOINTS.map(
  ({ method, path, scope }) => [method.toUpperCase(), path, scope] as const,
);

/** Policy of JSON: it loads nothing, and no page frames it. */
const POLICY = "default-src 'none'; frame-ancestors 'none'";
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

const service = useService();
const shop = useAccount(service);
// The whole text is that of clients/openapi.json: test/clients/unit/generated.test.ts
let document: Json;

beforeAll(async () => {
  const response = await fetch(`${service.url}/openapi.json`);
  expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  document = await response.json();
  ajv.addSchema({ components: document.components }, 'document');
});

const withSomeId = (path: string) => path.replace('{id}', 'some-id');
const ask = (method: string, path: string, more: readonly (readonly [string, string])[] = []) => {
  const headers = [['Authorization', `Bearer ${shop.key}`] as const, ...more];
  return exchange(service.url, { method, path, headers });
};

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
/** Compiles a schema, and what it refers to once for all. */
function compile(schema: unknown): ValidateFunction {
  const text = JSON.stringify(schema).replaceAll('"#/', '"document#/');
  const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text));
  compiled.set(text, validate);
  return validate;
}

test('every reference leads somewhere, every component is referred to, and every schema is valid', () => {
  const references = findAll('$ref', document).map(String);
  const { schemas, headers, examples } = document.components;
  const components = Object.entries<Json>({ schemas, headers, examples }).flatMap(([kind, all]) =>
    Object.keys(all).map((name) => `#/components/${kind}/${name}`),
  );
  expect([...new Set(references)].toSorted()).toEqual(components.toSorted());
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

test.each(ROUTES)('%s %s requires a key, with the scope %s', async (method, path, scope) => {
  const none = await call(service.url, method, withSomeId(path));
  expectRefusal(none, 'api_key_missing');
  expect(none.headers.get('WWW-Authenticate')).toBe('Bearer');
  const without = await service.account({ scopes: SCOPES.filter((each) => each !== scope) });
  const answer = await without.send(method, withSomeId(path));
  if (scope === null) {
    expect(answer.status).toBe(200);
    return;
  }
  expectRefusal(answer, 'api_key_scope_insufficient');
  expect(answer.body.error.message).toContain(scope);
  const only = await service.withKey(without, false, [scope]);
  const { body } = await only.send(method, withSomeId(path));
  expect(body.error?.code).not.toBe('api_key_scope_insufficient');
});

test('a body is required exactly where a request without one is refused', async () => {
  const { send } = await openCryptoShop(service);
  const operations = listOperations().filter(({ operation }) => operation.requestBody);
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

test('the webhooks are the events of docs/webhooks.md, of which 19 are sent by default', () => {
  expect(Object.keys(document.webhooks).sort()).toEqual([...EVENT_TYPES].sort());
  expect(DEFAULT_EVENT_TYPES).toHaveLength(19);
  for (const [type, { post }] of Object.entries<Json>(document.webhooks)) {
    const isDefault = DEFAULT_EVENT_TYPES.some((each) => each === type);
    expect(post.description).toMatch(isDefault ? /^Sent unless/ : /^Sent only where/);
  }
});

test.each([
  ...new Set(ROUTES.map(([, path]) => path)),
  ...['/healthz', '/readyz', '/openapi.json', '/connectors/acme/callbacks'],
])('%s answers any other method with 405 and the methods that it has', async (path) => {
  const own = ROUTES.filter((route) => route[1] === path).map<string>(([method]) => method);
  const other = path.startsWith('/connectors') ? ['POST'] : ['GET'];
  const allowed = own.length === 0 ? other : own;
  if (allowed.includes('GET')) allowed.push('HEAD');
  for (const method of METHODS.filter((each) => !allowed.includes(each))) {
    const answer = await ask(method, withSomeId(path));
    expectRefusal(answer, 'method_not_allowed');
    expect(answer.headers.get('Allow')?.split(', ').sort()).toEqual(allowed.toSorted());
  }
});

test.each([
  ...['/', '/v1/', '/v2/payments', '/v1/refund', '/v1//payments', '*', '//v1/payments', '/.env'],
  ...['/v1/payments/', '/v1/payments/some-id/', '/V1/payments', '/v1/payments;x=1'],
  ...['/v1/payments/../payments', '/v1/payments%2Fx', '/v1/sandbox/refunds/simulate'],
  ...['/v1/payouts/some-id/cancel', `/${'x'.repeat(10_000)}`, '/connectors/acme/callbacks/'],
])('%s is no route', async (path) => {
  for (const method of ['GET', 'POST', 'DELETE']) {
    expectRefusal(await ask(method, path), 'route_not_found');
  }
});

test.each([
  ...['%E0%A4%A', '%00', '%zz', '%F0%9F%98%80', '..%2F..%2Fetc', '%20', '{id}', '__proto__'],
  ...['%7B%22$ne%22:null%7D', 'x'.repeat(10_000), '5D0B5A8E-97D5-4E47-9D0C-2B1F6A3F8F11'],
])('no resource has the id %s', async (id) => {
  expectRefusal(await ask('GET', `/v1/payments/${id}`), 'payment_not_found');
});

test('every answer has its own id, the version and safe headers', async () => {
  const answers = [
    await ask('GET', '/v1/payments'),
    await ask('GET', '/v1/nothing'),
    // An unknown route is a 404 also without a key.
    await exchange(service.url, { method: 'GET', path: '/v1/nothing' }),
    await exchange(service.url, { method: 'GET' }),
    // The id of the caller is ignored.
    await ask('GET', '/healthz', [['Request-Id', 'mine']]),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 404, 404, 401, 200]);
  const ids = answers.map(({ headers }) => headers.get('Request-Id'));
  expect(new Set(ids).size).toBe(answers.length);
  for (const { headers } of answers) {
    expect(headers.get('Request-Id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('Service-Version')).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    expect(headers.get('Cache-Control')).toBe('no-store');
    expect(headers.get('Content-Security-Policy')).toBe(POLICY);
    expect(headers.get('X-Frame-Options')).toBe('DENY');
    expect(headers.get('X-Powered-By')).toBeNull();
  }
});

/** Bodies that every rule accepts, by the end of the path. */
const BODIES: [end: RegExp, body: object][] = [
  [/crypto\/payments\/[^/]+\/simulate$/, { event: 'received' }],
  [/simulate$/, { event: 'failed' }],
  [/test$/, { type: 'payout.sent' }],
  [/evidence$/, { explanation: 'It was delivered.' }],
];

const setting = useFixture(async () => {
  const owner = await buildAccount(service, { crypto: true });
  const stranger = await buildAccount(service, { crypto: true });
  const { ids } = await storeResources(service, { ...owner, livemode: false });
  const recipient = await owner.post('/v1/payout-recipients', cardRecipient());
  const endpoint = await buildEndpoint(owner, { url: 'http://127.0.0.1:9/hook' });
  const created = { 'payout-recipients': recipient.body.id, 'webhook-endpoints': endpoint.id };
  const all: Readonly<Record<string, string>> = { ...ids, ...created };
  return { owner, ids: all, others: { stranger, live: await service.withKey(owner, true) } };
});

/** Reads all that the accounts have. */
async function readAll() {
  const names = [
    ...['payments', 'refunds', 'payouts', 'recipients', 'events', 'webhook_endpoints'],
    ...['crypto_payments', 'crypto_settlements', 'bank_callbacks', 'audit_log'],
  ];
  const { owner, others, ids } = setting;
  const account_id = { $in: [owner.account_id, others.stranger.account_id] };
  const filter = { $or: [{ account_id }, { resource_id: { $in: Object.values(ids) } }] };
  return await Promise.all(names.map((name) => service.collection(name).find(filter).toArray()));
}

const toUnknown = (id: string) =>
  `${id.slice(0, -6)}${id.endsWith('000000') ? '111111' : '000000'}`;

test.each(['stranger', 'live'] as const)(
  'a key of %s finds what it would at unknown ids, and changes nothing',
  async (asker) => {
    const { owner, ids, others } = setting;
    const before = await readAll();
    /** Expects the same refusal about an id of the owner as about one that nobody has. */
    const expectUnknown = async (
      code: ErrorCode,
      id: string,
      send: (id: string) => Promise<Answer>,
    ) => {
      const [foreign, none] = [await send(id), await send(toUnknown(id))];
      expectRefusal(foreign, code);
      const compare = ({ status, body: { error } }: Answer) => [
        ...[status, { ...error, request_id: '' }],
      ];
      expect(compare(foreign)).toEqual(compare(none));
    };
    for (const { method, path, codes = [] } of ENDPOINTS.filter((each) =>
      each.path.includes('{id}'),
    )) {
      const [, resource = ''] = /^\/v1\/(?:sandbox\/)?(.+)\/\{id\}/.exec(path) ?? [];
      const isSandboxOnly = asker === 'live' && path.startsWith('/v1/sandbox/');
      const notFound = codes.find((each) => each.endsWith('_not_found'));
      const code = isSandboxOnly ? 'api_key_scope_insufficient' : notFound;
      const id = ids[resource] ?? '';
      const body = method === 'get' ? undefined : BODIES.find(([end]) => end.test(path))?.[1];
      await expectUnknown(code ?? 'internal_error', id, (each) =>
        others[asker].send(method.toUpperCase(), path.replace('{id}', each), body),
      );
      if (method !== 'get') continue;
      expect([path, (await owner.get(path.replace('{id}', id))).status]).toEqual([path, 200]);
    }
    await expectUnknown('payment_not_found', ids['payments'] ?? '', (payment_id) =>
      others[asker].post('/v1/refunds', { payment_id }),
    );
    expect(await readAll()).toEqual(before);
  },
);

describe('an example', () => {
  const readBody = (path: string, method = 'post') =>
    document.paths[path]?.[method]?.requestBody?.content['application/json'].example;
  const shop = useFixture(async () => {
    const opened = await openCryptoShop(service);
    await opened.registerWallet();
    await fundAccount(service, opened, { amount: 1_000_000 });
    // Created at once, since each waits until the caches of all processes know it.
    const endpoint = readBody('/v1/webhook-endpoints');
    const post = () => opened.post('/v1/webhook-endpoints', endpoint);
    const answers = await Promise.all(Array.from({ length: 6 }, post));
    return { ...opened, endpoints: answers.map(({ body }) => body.id) };
  });

  /** Posts the example of a path with changes; returns the id of the resource. */
  const create = async (name: string, changes: object = {}): Promise<string> => {
    const path = `/v1/${name}`;
    const { status, body, text } = await shop.post(path, { ...readBody(path), ...changes });
    if (status >= 400) throw new Error(`POST ${path}: ${text}`);
    return body.id;
  };
  const createAndReport = async (name: string, event: string) => {
    const id = await create(name);
    await shop.post(`/v1/sandbox/${name}/${id}/simulate`, { event });
    return id;
  };
  /** Fields of a body besides its example, by the collection of the path. */
  const nameFor: Record<string, () => Promise<object>> = {
    refunds: async () => ({ payment_id: await createAndReport('payments', 'settled') }),
    payouts: async () => ({ recipient_id: await create('payout-recipients') }),
    'crypto/settlements': async () => {
      await createAndReport('crypto/payments', 'received');
      return { amount: '1000000000000000' };
    },
  };
  const openDispute = async (): Promise<string> => {
    const id = await createAndReport('payments', 'settled');
    await shop.post(`/v1/sandbox/payments/${id}/simulate`, { event: 'dispute_opened' });
    return (await shop.get(`/v1/disputes?payment_id=${id}`)).body.data[0].id;
  };
  /** Creates what a path is about, or a payment, in the state that its paths need. */
  const createResource = async (name: string): Promise<string> => {
    if (name === 'webhook-endpoints') return shop.endpoints.pop();
    if (name === 'disputes') return await openDispute();
    if (document.paths[`/v1/${name}`]?.post === undefined) {
      const id = await create('payments');
      if (name !== 'events') return id;
      return (await shop.get(`/v1/events?resource_id=${id}`)).body.data[0].id;
    }
    const id = await create(name, await nameFor[name]?.());
    const sent = { payouts: 'payouts', 'crypto/settlements': 'crypto_settlements' } as const;
    const kind = Object.entries(sent).find(([each]) => each === name)?.[1];
    if (kind !== undefined) await service.becomes(kind, id, { status: 'sent' });
    return id;
  };

  test.each(ENDPOINTS.map((each) => [each.operation, each] as const))(
    'of %s succeeds, and is answered with the fields of its own answer',
    async (operation, { method, path, success }) => {
      const { responses, parameters = [] } = document.paths[path][method];
      const { example } = responses[success.status].content['application/json'];
      const [, name = ''] = /^\/v1\/(?:sandbox\/)?((?:crypto\/)?[\w-]+)/.exec(path) ?? [];
      const named = success.status === 201 ? await nameFor[name]?.() : {};
      const body = readBody(path, method);
      const ask = async (query: string) => {
        const id = path.includes('{id}') ? await createResource(name) : '';
        const to = `${path.replace('{id}', id)}${query}`;
        const answer = await shop.send(method.toUpperCase(), to, body && { ...body, ...named });
        expect([query, answer.status, answer.text]).toEqual([query, success.status, answer.text]);
        return answer.body;
      };
      const query: string[] = parameters
        .filter(({ name, in: place }: Json) => place === 'query' && name !== 'after')
        .map(({ name, example: value }: Json) => `${name}=${encodeURIComponent(value)}`);
      if (query.length > 0) await ask(`?${query.join('&')}`);
      if (operation === 'listPaymentRefunds') return;
      const isList = operation.startsWith('list');
      // At least one row, also where this test runs alone.
      if (isList) await createResource(name);
      const answer = await ask('');
      const [got, shown] = isList ? [answer.data[0], example.data[0]] : [answer, example];
      expect(Object.keys(got)).toEqual(Object.keys(shown));
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
    ...[{ amount: 1, reason: 'x'.repeat(500) }, { reason: 5 }, { reason: 'x'.repeat(501) }],
    ...[{ payment_id: undefined }, { payment_id: 'x'.repeat(101) }],
  ],
  payouts: [
    { reference: 'x'.repeat(255), metadata: { balance_account: 'marketing', a: { b: [] } } },
    ...[{ reference: null, metadata: null }, { amount: undefined }, { method: null }],
    ...[{ recipient_id: 'x'.repeat(101) }, { recipient_id: undefined }, { recipient_id: null }],
  ],
};
const OF_ALL = [
  ...[{}, { amount: 10.5 }, { amount: 0 }, { amount: '5' }, { currency: 'eur' }, { extra: 1 }],
  ...[{ reference: 'x'.repeat(256) }, { reference: 5 }, { metadata: [1] }],
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

describe('readiness', () => {
  const database = useDatabase({ indexed: false });
  const temporal = useFixture(
    async () => connectTemporal({ address: temporalAddress(), namespace: 'default' }),
    ({ connection }) => connection.close(),
  );

  afterEach(() => database.stores.heartbeats.end('worker'));

  async function askAt(url: string) {
    const response = await fetch(url);
    const body: unknown = await response.json();
    return [response.status, response.headers.get('Retry-After'), body];
  }

  /** Asks a server of the routes, of which some parts may be away. */
  async function ask(
    path: string,
    {
      client = temporal,
      mongo = database.mongo,
      stopping,
    }: { client?: Client; mongo?: MongoClient; stopping?: AbortSignal } = {},
  ) {
    const router = new Router();
    const now = () => new Date();
    const stores = createStores(mongo.db(database.db.databaseName));
    mountHealth(router, {
      ...{ mongo, heartbeats: stores.heartbeats, now, stopping },
      temporal: createTemporalClient({ client, lifecycleQueue: 'none', stores, now }),
    });
    const server = createServer(new Koa().use(router.routes()).callback());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const begun = performance.now();
    try {
      return await askAt(`http://127.0.0.1:${getPort(server.address())}${path}`);
    } finally {
      server.close();
      // In two seconds, and time for a busy machine.
      expect(performance.now() - begun).toBeLessThan(60_000);
    }
  }

  const beat = (secondsAgo = 0, environments?: Env[]) => {
    const at = new Date(Date.now() - secondsAgo * 1_000);
    return database.stores.heartbeats.beat('worker', at, environments);
  };

  /** Expects parts to be missing, though a busy machine's servers and workers may be silent for some seconds. */
  async function expectMissing(
    missing: string[],
    read = () => ask('/readyz'),
    begin: () => Promise<unknown> = async () => undefined,
  ) {
    const isReady = missing.length === 0;
    const status = isReady ? 'ready' : 'not_ready';
    const expected = [isReady ? 200 : 503, isReady ? null : '1', { status, missing }];
    let answer: unknown;
    await eventually('the answer of /readyz', async () => {
      await begin();
      answer = await read();
      return JSON.stringify(answer) === JSON.stringify(expected);
    }).catch(() => undefined);
    expect(answer).toEqual(expected);
  }

  test('healthz answers while the process runs', async () => {
    const answer = [200, null, { status: 'ok' }];
    expect(await ask('/healthz')).toEqual(answer);
    expect(await askAt(`${sharedProduct().url}/healthz`)).toEqual(answer);
  });

  test.each<[what: string, missing: string[], begin: () => Promise<unknown>]>([
    ['the worker without one', ['worker'], async () => undefined],
    ['nothing with a worker that polls', [], () => beat(1)],
    ['the worker when it has been silent for 30 seconds', ['worker'], () => beat(30)],
    ['live when a worker serves the sandbox alone', ['worker_live'], () => beat(0, ['sandbox'])],
    ['the sandbox when a worker serves live alone', ['worker_sandbox'], () => beat(0, ['live'])],
    [
      'the worker when it has ended',
      ['worker'],
      () => beat().then(() => database.stores.heartbeats.end('worker')),
    ],
  ])('readyz names %s', async (_what, missing, begin) => {
    await expectMissing(missing, undefined, begin);
  });

  test('readyz names Temporal, or MongoDB and the workers stored there, in time when it is unavailable', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:1' });
    const client = new Client({ connection });
    await expectMissing(['temporal'], () => ask('/readyz', { client }), beat);
    await connection.close();
    const mongo = await connectMongo(mongodbUri(), 'health');
    await mongo.close();
    await expectMissing(['mongodb', 'worker'], () => ask('/readyz', { mongo }));
  });

  test('readyz names the API once its process is about to end, and nothing else when asked about it only', async () => {
    const stopping = new AbortController();
    const parts = { stopping: stopping.signal };
    const only = () => ask('/readyz?only=api', parts);
    await expectMissing([], only);
    stopping.abort();
    await expectMissing(['api'], only);
    await expectMissing(['worker', 'api'], () => ask('/readyz', parts));
    // The workers of the shared product send no heartbeats.
    await expectMissing(['worker'], () => askAt(`${sharedProduct().url}/readyz`));
  });
});
