import type { ErrorCode } from '../../src/domain/errors';
import { buildAccount, buildEndpoint } from '../support/factories';
import { useFixture } from '../support/fixture';
import type { Answer } from '../support/http';
import { useAccount, useService } from '../support/service';
import { storeResources } from '../support/stored-resources';
import { exchange } from './exchange';
import { cardRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';
import { ROUTES, withSomeId } from './routes-setting';

/** Policy of JSON: it loads nothing, and no page frames it. */
const POLICY = "default-src 'none'; frame-ancestors 'none'";
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

const service = useService();
const shop = useAccount(service);

const ask = (method: string, path: string, more: readonly (readonly [string, string])[] = []) => {
  const headers = [['Authorization', `Bearer ${shop.key}`] as const, ...more];
  return exchange(service.url, { method, path, headers });
};

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
  ['/v1/payments', 200],
  ['/v1/payout-methods', 200],
  ['/healthz', 200],
  ['/v1/payments/some-id', 404],
])('HEAD %s answers %i like GET, without the body', async (path, status) => {
  const [head, get] = [await ask('HEAD', path), await ask('GET', path)];
  expect([head.status, get.status, head.text]).toEqual([status, status, '']);
  if (status !== 200) return;
  expect(head.headers.get('Content-Length')).toBe(get.headers.get('Content-Length'));
});

test.each([
  ...['/', '/v1', '/v1/', '/v2/payments', '/v1/refund', '/payments', '/v1//payments'],
  ...['//v1/payments', '/v1/payments/', '/v1/payments/some-id/', '/V1/payments', '/v1/Payments'],
  ...['/v1/payments;x=1', '/v1/payments/../payments', '/v1/payments/a/b', '/v1/payments%2Fx'],
  ...['/v1/payments/some-id/refunds/', '/v1/payments//refunds', '/v1/sandbox/refunds/simulate'],
  ...['/v1/payouts/some-id/cancel', '/v1/payout', '/v1/payout-methods/available', '/.env'],
  ...['/v1/payments/some-id/capture', `/${'x'.repeat(10_000)}`, '/openapi.json/', '*'],
  '/connectors/acme/callbacks/',
])('%s is no route', async (path) => {
  for (const method of ['GET', 'POST', 'DELETE']) {
    expectRefusal(await ask(method, path), 'route_not_found');
  }
});

test.each([
  ...['%E0%A4%A', '%00', '%', '%zz', '%F0%9F%98%80', 'a%2Fb', '..%2F..%2Fetc', '%20', '{id}'],
  ...['[object%20Object]', '%7B%22$ne%22:null%7D', 'x'.repeat(10_000)],
  ...['5D0B5A8E-97D5-4E47-9D0C-2B1F6A3F8F11', 'available', '__proto__', 'constructor'],
])('no resource has the id %s', async (id) => {
  expectRefusal(await ask('GET', `/v1/payments/${id}`), 'payment_not_found');
  expectRefusal(await ask('POST', `/v1/payments/${id}/cancel`), 'payment_not_found');
  expectRefusal(await ask('GET', `/v1/payments/${id}/refunds`), 'payment_not_found');
  expectRefusal(await ask('GET', `/v1/refunds/${id}`), 'refund_not_found');
  expectRefusal(await ask('GET', `/v1/payouts/${id}`), 'payout_not_found');
});

test.each(['?limit=%E0%A4%A', '?limit=%', '?limit=%00', '?%E0%A4%A=1', '?=', '?limit[]=1'])(
  'the query %s is refused',
  async (query) => {
    for (const name of ['payments', 'refunds', 'payouts']) {
      expectRefusal(await ask('GET', `/v1/${name}${query}`), 'invalid_request');
    }
  },
);

test('every answer has its own id, the version and safe headers', async () => {
  // An unknown route is a 404 also without a key.
  const unknown = await exchange(service.url, { method: 'GET', path: '/v1/nothing' });
  expectRefusal(unknown, 'route_not_found');
  const answers = [
    unknown,
    await ask('GET', '/v1/payments'),
    await ask('GET', '/v1/nothing'),
    await ask('GET', '/healthz'),
    await exchange(service.url, { method: 'GET' }),
    // The id of the caller is ignored.
    await ask('GET', '/v1/payments', [['Request-Id', 'mine']]),
  ];
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

const CODES: Record<string, ErrorCode> = {
  payments: 'payment_not_found',
  refunds: 'refund_not_found',
  payouts: 'payout_not_found',
  'payout-recipients': 'recipient_not_found',
  events: 'event_not_found',
  'webhook-endpoints': 'webhook_endpoint_not_found',
  'crypto/payments': 'crypto_payment_not_found',
  'crypto/settlements': 'crypto_settlement_not_found',
};

const WITH_ID = ROUTES.filter(([, path]) => path.includes('{id}')).map(
  ([method, path]) => [method, path] as const,
);

/** Bodies that every rule accepts, by the end of the path. */
const BODIES: [end: RegExp, body: object][] = [
  [/crypto\/payments\/[^/]+\/simulate$/, { event: 'received' }],
  [/simulate$/, { event: 'failed' }],
  [/test$/, { type: 'payout.sent' }],
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

/** Expects the same refusal about an id of the owner as about one that nobody has, without effects. */
async function expectUnknown(
  code: ErrorCode,
  id: string,
  ask: (id: string) => Promise<Answer>,
): Promise<void> {
  const before = await readAll();
  const foreign = await ask(id);
  const none = await ask(`${id.slice(0, -6)}${id.endsWith('000000') ? '111111' : '000000'}`);
  expectRefusal(foreign, code);
  const compare = ({ status, body: { error } }: Answer) => [status, { ...error, request_id: '' }];
  expect(compare(foreign)).toEqual(compare(none));
  expect(await readAll()).toEqual(before);
}

describe.each([
  ['a stranger', 'stranger'],
  ['the live environment', 'live'],
] as const)('a key of %s', (_, asker) => {
  test.each(WITH_ID)(
    'finds at %s %s what it would at an unknown id, and changes nothing',
    async (method, path) => {
      const [, resource = ''] = /^\/v1\/(?:sandbox\/)?(.+)\/\{id\}/.exec(path) ?? [];
      const isSandboxOnly = asker === 'live' && path.startsWith('/v1/sandbox/');
      const code = isSandboxOnly ? 'api_key_scope_insufficient' : CODES[resource];
      const id = setting.ids[resource] ?? '';
      const body = method === 'GET' ? undefined : BODIES.find(([end]) => end.test(path))?.[1];
      await expectUnknown(code ?? 'internal_error', id, (each) =>
        setting.others[asker].send(method, path.replace('{id}', each), body),
      );
      if (method !== 'GET') return;
      expect((await setting.owner.get(path.replace('{id}', id))).status).toBe(200);
    },
  );

  test('cannot refund a payment of the owner', async () => {
    const { payments = '' } = setting.ids;
    await expectUnknown('payment_not_found', payments, (payment_id) =>
      setting.others[asker].post('/v1/refunds', { payment_id }),
    );
  });
});
