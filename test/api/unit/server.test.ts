import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { closeServer, createHttpServer } from '../../../src/api/server';
import { expectErrorShape } from '../refusal';

const HALF_A_HEAD = 'GET / HTTP/1.1\r\nHost: x\r\n';
const POST = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n';

/** Closes what a test has opened. */
let close: () => Promise<void> = async () => undefined;
afterEach(() => close());

type Limits = Parameters<typeof createHttpServer>[1];

/** Connects a client that never closes its side, to a server of its own. */
async function open(
  limits: Limits = {},
  listener: RequestListener = (_, response) => response.end('{}'),
) {
  const server = createHttpServer(listener, limits).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  client.on('error', () => {});
  close = () => {
    client.destroy();
    return closeServer(server, 0);
  };
  const [socket] = await accepted;
  return { client, closed: new Promise<void>((resolve) => socket.once('close', () => resolve())) };
}

/** Sends bytes, and reads the answer until the server ends it. */
async function exchange(client: Socket, bytes: string) {
  client.write(bytes, 'latin1');
  const [head = '', body = ''] = (await text(client)).split('\r\n\r\n');
  const [line = '', ...lines] = head.split('\r\n');
  const headers = new Headers(lines.map((each) => each.split(': ') as [string, string]));
  return { status: Number(line.split(' ')[1]), headers, text: body, body: JSON.parse(body) };
}

test.each([
  ['sends headers of 20 kB', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
  ['sends a path of 20 kB', `GET /${'y'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431],
  ['sends an unknown method', 'HELLO / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['sends two lengths', `${POST}Content-Length: 6\r\n\r\n`, 400],
  ['sends a length and chunks', `${POST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
  ['sends a control character', 'GET / HTTP/1.1\r\nHost: x\r\nX: \u0001\r\n\r\n', 400],
  ['sends TLS', '\u0016\u0003\u0001\u0002\u0000\u0001', 400],
  ['sends nothing', '', 408],
  ['sends half a head', HALF_A_HEAD, 408],
])(
  'a client that %s and never closes is refused in the one shape of errors and disconnected',
  async (_, bytes, status) => {
    const slow = { headersTimeout: 50, connectionsCheckingInterval: 20 };
    const limits = { lingerTimeout: 100, inactivityTimeout: 600_000 };
    const { client, closed } = await open({ ...limits, ...(status === 408 ? slow : {}) });
    const answer = await exchange(client, bytes);
    expect([answer.status, answer.body.error.code]).toEqual([status, 'invalid_request']);
    expectErrorShape(answer);
    const headers = Object.fromEntries(answer.headers);
    expect(headers).toMatchObject({
      'service-version': expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      ...{ 'x-frame-options': 'DENY', 'x-content-type-options': 'nosniff', connection: 'close' },
    });
    await closed;
  },
);

test('a client that continues its slow head after the refusal, or does not read its answer, is disconnected', async () => {
  const limits = { headersTimeout: 50, connectionsCheckingInterval: 20, lingerTimeout: 200 };
  const slow = await open(limits);
  slow.client.write(HALF_A_HEAD);
  slow.client.resume();
  const sending = setInterval(() => slow.client.write('X: y\r\n'), 10);
  await slow.closed;
  clearInterval(sending);
  await close();
  const deaf = await open({ inactivityTimeout: 100 }, (_, response) => {
    // More than the buffers of both sides hold.
    response.end(Buffer.alloc(32 * 1024 * 1024));
  });
  deaf.client.pause();
  deaf.client.write(`${HALF_A_HEAD}\r\n`);
  await deaf.closed;
});

test('an idle connection is kept for its time and says so, whatever the limits of headers and bytes', async () => {
  const limits = { headersTimeout: 50, connectionsCheckingInterval: 20, inactivityTimeout: 100 };
  const { client, closed } = await open({ ...limits, keepAliveTimeout: 1_000 });
  client.write(`${HALF_A_HEAD}\r\n`);
  const [answer] = await once(client, 'data');
  expect(String(answer)).toContain('Keep-Alive: timeout=1\r\n');
  const answeredAt = performance.now();
  await closed;
  expect(performance.now() - answeredAt).toBeGreaterThan(900);
});
