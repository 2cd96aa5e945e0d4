import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { closeServer, createHttpServer } from '../../src/api/server';
import { useAccount, useService } from '../support/service';
import { exchange } from './exchange';
import { expectErrorShape, expectRefusal } from './refusal';
import { ROUTES, withSomeId } from './routes-setting';

const service = useService();
const shop = useAccount(service);

const ask = (method: string, path: string, more: readonly (readonly [string, string])[] = []) =>
  exchange(service.url, {
    method,
    path,
    headers: [['Authorization', `Bearer ${shop.key}`], ...more],
  });

const methodsOf = (path: string) =>
  ROUTES.flatMap(([method, at]) =>
    at !== path ? [] : method === 'GET' ? ['GET', 'HEAD'] : [method],
  ).sort();
const PATHS: [path: string, methods: string[]][] = [
  ...[...new Set(ROUTES.map(([, path]) => path))].map((path): [string, string[]] => [
    withSomeId(path),
    methodsOf(path),
  ]),
  ...['/healthz', '/readyz', '/openapi.json'].map((path): [string, string[]] => [
    path,
    ['GET', 'HEAD'],
  ]),
];
/** Policy of JSON: it loads nothing, and no page frames it. */
const NOTHING = "default-src 'none'; frame-ancestors 'none'";
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];

test.each(PATHS)('%s takes %j; any other method is a 405 that says so', async (path, methods) => {
  // `/v1/payment-methods/available` and the like stand beside no `/{id}`: one route each.
  for (const method of METHODS.filter((each) => !methods.includes(each))) {
    const answer = await ask(method, path);
    expectRefusal(answer, 'method_not_allowed');
    expect(answer.headers.get('Allow')?.split(', ').sort()).toEqual(methods);
  }
});

test.each(['/v1/payments', '/v1/refunds', '/v1/payouts', '/v1/payout-methods', '/healthz'])(
  'HEAD %s answers as GET does, without the body',
  async (path) => {
    const [head, get] = [await ask('HEAD', path), await ask('GET', path)];
    expect([head.status, head.text]).toEqual([get.status, '']);
    expect(head.headers.get('Content-Length')).toBe(get.headers.get('Content-Length'));
  },
);

test('a HEAD that is refused has a status and no body', async () => {
  const answer = await ask('HEAD', '/v1/payments/some-id');
  expect([answer.status, answer.text]).toEqual([404, '']);
});

test.each([
  '/',
  '/v1',
  '/v1/',
  '/v2/payments',
  '/v1/refund',
  '/payments',
  '/v1//payments',
  '//v1/payments',
  '/v1/payments/',
  '/v1/payments/some-id/',
  '/V1/payments',
  '/v1/Payments',
  '/v1/payments;x=1',
  '/v1/payments/../payments',
  '/v1/payments/a/b',
  '/v1/payments%2Fx',
  '/v1/refunds/',
  '/v1/refunds/some-id/',
  '/v1/refunds/a/b',
  '/v1/Refunds',
  '/v1/refunds%2Fx',
  '/v1/payments/some-id/refunds/',
  '/v1/payments//refunds',
  '/v1/sandbox/refunds/simulate',
  '/v1/payouts/',
  '/v1/payouts/some-id/',
  '/v1/payouts/some-id/cancel',
  '/v1/Payouts',
  '/v1/payout',
  '/v1/payout-methods/available',
  '/v1/sandbox/payouts/simulate',
  '/.env',
  '/v1/payments/some-id/capture',
  `/${'x'.repeat(10_000)}`,
  '/openapi.json/',
  '*',
])('%s is no route', async (path) => {
  for (const method of ['GET', 'POST', 'DELETE']) {
    expectRefusal(await ask(method, path), 'route_not_found');
  }
});

test.each([
  '%E0%A4%A',
  '%00',
  '%',
  '%zz',
  '%F0%9F%98%80',
  'a%2Fb',
  '..%2F..%2Fetc',
  '%20',
  '{id}',
  '[object Object]'.replaceAll(' ', '%20'),
  '%7B%22$ne%22:null%7D',
  'x'.repeat(10_000),
  '5D0B5A8E-97D5-4E47-9D0C-2B1F6A3F8F11',
  'available',
  '__proto__',
  'constructor',
])('the id %s is one that nobody has', async (id) => {
  expectRefusal(await ask('GET', `/v1/payments/${id}`), 'payment_not_found');
  expectRefusal(await ask('POST', `/v1/payments/${id}/cancel`), 'payment_not_found');
  expectRefusal(await ask('GET', `/v1/payments/${id}/refunds`), 'payment_not_found');
  expectRefusal(await ask('GET', `/v1/refunds/${id}`), 'refund_not_found');
  expectRefusal(await ask('GET', `/v1/payouts/${id}`), 'payout_not_found');
});

test.each(['?limit=%E0%A4%A', '?limit=%', '?limit=%00', '?%E0%A4%A=1', '?=', '?limit[]=1'])(
  'the query %s is refused',
  async (query) => {
    expectRefusal(await ask('GET', `/v1/payments${query}`), 'invalid_request');
    expectRefusal(await ask('GET', `/v1/refunds${query}`), 'invalid_request');
    expectRefusal(await ask('GET', `/v1/payouts${query}`), 'invalid_request');
  },
);

test('an unknown route tells nothing of keys: it is a 404 with and without one', async () => {
  const answer = await exchange(service.url, { method: 'GET', path: '/v1/nothing' });
  expectRefusal(answer, 'route_not_found');
});

test('every answer has an id of its own and the version, and is kept by no cache', async () => {
  const answers = [
    await ask('GET', '/v1/payments'),
    await ask('GET', '/v1/nothing'),
    await ask('GET', '/healthz'),
    await exchange(service.url, { method: 'GET' }),
    // What the caller calls it is not taken over: the id is ours, and one each.
    await ask('GET', '/v1/payments', [['Request-Id', 'mine']]),
  ];
  const ids = answers.map(({ headers }) => headers.get('Request-Id'));
  expect(new Set(ids).size).toBe(answers.length);
  for (const { headers } of answers) {
    expect(headers.get('Request-Id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('Service-Version')).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    expect(headers.get('Cache-Control')).toBe('no-store');
    expect(headers.get('Content-Security-Policy')).toBe(NOTHING);
    expect(headers.get('X-Frame-Options')).toBe('DENY');
    expect(headers.get('X-Powered-By')).toBeNull();
  }
});

describe('what is no HTTP for us', () => {
  let url: URL;
  let close: () => Promise<void>;
  beforeAll(async () => {
    const server = createHttpServer((_, response) => response.end('{}'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    url = new URL(`http://127.0.0.1:${port}`);
    close = () => closeServer(server, 100);
  });
  afterAll(() => close());

  /** Bytes in, bytes out. */
  async function send(bytes: string, port = Number(url.port)) {
    const socket = connect(port, url.hostname);
    socket.write(bytes, 'latin1');
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    const [head = '', text = ''] = Buffer.concat(chunks).toString().split('\r\n\r\n');
    const [line = '', ...lines] = head.split('\r\n');
    const headers = new Headers(
      lines.map((each): [string, string] => {
        const colon = each.indexOf(':');
        return [each.slice(0, colon), each.slice(colon + 1).trim()];
      }),
    );
    return { status: Number(line.split(' ')[1]), headers, text, body: JSON.parse(text) };
  }

  test('headers that come too slowly end soon after the limit, as 408', async () => {
    const limits = { headersTimeout: 200, connectionsCheckingInterval: 50 };
    const server = createHttpServer((_, response) => response.end('{}'), limits);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { status, body } = await send('GET / HTTP/1.1\r\nHost: x\r\n', port);
    expect([status, body.error.code]).toEqual([408, 'invalid_request']);
    await closeServer(server, 100);
  });

  test.each([
    ['headers of 20 kB', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
    ['a path of 20 kB', `GET /${'y'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431],
    ['an unknown method', 'HELLO / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    [
      'two lengths',
      'GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n',
      400,
    ],
    [
      'a length beside chunks',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['a header with a control character', 'GET / HTTP/1.1\r\nHost: x\r\nX: \u0001\r\n\r\n', 400],
    ['TLS', '\u0016\u0003\u0001\u0002\u0000\u0001', 400],
  ])('%s: refused in the one shape of errors', async (_, bytes, status) => {
    const answer = await send(bytes);
    expect(answer.status).toBe(status);
    expectErrorShape(answer);
    expect(answer.headers.get('Service-Version')).toMatch(/^\d{4}-\d{2}-\d{2}$/);
    expect(answer.headers.get('Content-Security-Policy')).toBe(NOTHING);
    expect(answer.headers.get('X-Frame-Options')).toBe('DENY');
    expect(answer.headers.get('X-Content-Type-Options')).toBe('nosniff');
    expect(answer.headers.get('Connection')).toBe('close');
  });
});
