import type { OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { postOutside } from '../../src/webhooks/post';
import { parseRetryAfter } from '../../src/webhooks/post-result';
import { createDenyCheck } from '../../src/webhooks/url';
import { LOCALHOST_CERTIFICATE } from './certificate';
import { post, useReceivers } from './posting';
import { receiveHttp } from './receiver';

const receivers = useReceivers();

describe('a post', () => {
  test('carries the bytes, the headers and the path unchanged', async () => {
    const requests: unknown[] = [];
    const receiver = await receivers.http(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { headers, method, url } = request;
      requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(202).end('thanks');
    });
    expect(await post(receiver.url, { body: '{"name":"Zoë"}' })).toEqual({
      outcome: 'response',
      status: 202,
      excerpt: 'thanks',
      durationMs: expect.any(Number),
    });
    expect(requests).toEqual([
      {
        method: 'POST',
        url: '/hook?source=test',
        body: '{"name":"Zoë"}',
        headers: {
          'content-type': 'application/json',
          'service-event-type': 'payment.settled',
          host: `localhost:${receiver.port}`,
          'accept-encoding': 'identity',
          'content-length': '15',
          connection: 'keep-alive',
        },
      },
    ]);
  });

  test('does not follow a redirect', async () => {
    const target = await receivers.http();
    for (const status of [301, 302, 307, 308]) {
      const receiver = await receivers.http((_request, response) =>
        response.writeHead(status, { Location: target.url }).end(),
      );
      expect(await post(receiver.url)).toMatchObject({ outcome: 'response', status });
    }
    expect(target.connections()).toBe(0);
  });

  test('reads at most 64 KiB of an answer, and keeps at most 1 KiB', async () => {
    let written = 0;
    const receiver = await receivers.http((_request, response) => {
      const flood = () => {
        while (response.writable && response.write('x'.repeat(65_536))) written += 65_536;
      };
      response.on('drain', flood).on('error', () => undefined);
      flood();
    });
    const result = await post(receiver.url);
    expect(result).toMatchObject({ status: 200, excerpt: 'x'.repeat(1_024) });
    // The sockets' buffers take some; an endless answer would have gone far beyond.
    expect(written).toBeLessThan(32 * 1_024 * 1_024);
  });

  test.each<[string, OutgoingHttpHeaders, string | Buffer, object]>([
    [
      'compressed, as it is',
      { 'Content-Encoding': 'gzip' },
      gzipSync('a'.repeat(1_000_000)),
      { excerpt: expect.not.stringContaining('aaaa') },
    ],
    [
      'long, cut between characters',
      {},
      `x${'é'.repeat(1_000)}`,
      { excerpt: `x${'é'.repeat(511)}` },
    ],
    ['to be asked again later', { 'Retry-After': '120' }, '', { retryAfterSeconds: 120 }],
    ['with headers of 60 kB', { 'X-Long': 'x'.repeat(60_000) }, 'ok', { excerpt: 'ok' }],
  ])('takes an answer that is %s', async (_, headers, body, expected) => {
    const receiver = await receivers.http((_request, response) =>
      response.writeHead(200, headers).end(body),
    );
    const result = await post(receiver.url);
    expect(result).toMatchObject({ outcome: 'response', status: 200, ...expected });
    expect(result).not.toHaveProperty('note');
  });

  test('uses a connection again, unless the receiver has closed it or the name has another address', async () => {
    const sockets: Socket[] = [];
    let posts = 0;
    const receiver = await receivers.http((request, response) => {
      sockets.push(request.socket);
      posts += 1;
      response.end();
    });
    const resolved = (...addresses: string[]) => ({ resolve: async () => addresses });
    await post(receiver.url);
    await post(receiver.url);
    expect(receiver.connections()).toBe(1);
    // The next post meets the closed connection before it is known to be closed.
    sockets[0]?.destroy();
    expect(await post(receiver.url)).toMatchObject({ outcome: 'response', status: 200 });
    expect(receiver.connections()).toBe(2);
    await post(receiver.url, resolved('127.0.0.1', '127.0.0.2'));
    expect(receiver.connections()).toBe(3);
    expect(posts).toBe(4);
  });

  test('is sent at most twice where the receiver resets connections that were idle', async () => {
    const used = new Set<Socket>();
    let resets = 0;
    const receiver = await receivers.http(({ socket }, response) => {
      const isReused = used.has(socket);
      used.add(socket);
      if (isReused) {
        resets += 1;
        socket.destroy();
      } else setTimeout(() => response.end(), 20);
    });
    const both = await Promise.all([post(receiver.url), post(receiver.url), post(receiver.url)]);
    expect(both.map(({ outcome }) => outcome)).toEqual(Array(3).fill('response'));
    expect(await post(receiver.url)).toMatchObject({ outcome: 'response', status: 200 });
    expect({ resets, connections: receiver.connections() }).toEqual({ resets: 1, connections: 4 });
  });
});

test('Retry-After is a number of seconds or a date, and ignored when it is neither', () => {
  const now = Date.parse('2026-03-01T12:00:00.000Z');
  const seconds = {
    '120': 120,
    '0': 0,
    ' 7 ': 7,
    'Sun, 01 Mar 2026 12:01:30 GMT': 90,
    'Sun, 01 Mar 2026 11:00:00 GMT': 0,
  };
  for (const [header, wait] of Object.entries(seconds)) {
    expect([header, parseRetryAfter(header, now)]).toEqual([header, wait]);
  }
  const dates = ['soon', '2026-03-01', 'Sun, 99 Mar 2026 99:00:00 GMT'];
  const headers = [undefined, '', '-1', '1.5', '1e9', '9999999999', ...dates];
  expect(headers.filter((header) => parseRetryAfter(header, 0) !== undefined)).toEqual([]);
});

describe('a post makes no connection', () => {
  const refused = { outcome: 'error', kind: 'refused_address' };

  // No look-up would catch a literal.
  test.each([
    ...['127.0.0.1', '0x7f.1', '2130706433', '[::ffff:7f00:1]', '0.0.0.0', '[::]'],
    // To this machine from a live endpoint, and to a name that is nowhere public.
    ...['localhost', 'example.com'],
  ])('to %s', async (host) => {
    const receiver = await receivers.http();
    const resolve = async () =>
      host === 'localhost' ? ['127.0.0.1'] : ['64:ff9b::7f00:1', '127.0.0.1'];
    const url = `https://${host}:${receiver.port}/`;
    expect(await post(url, { allowPrivate: false, resolve })).toMatchObject(refused);
    expect(receiver.connections()).toBe(0);
  });

  test('to a network that the operator denies', async () => {
    const { url, connections } = await receivers.http();
    const params = { headers: {}, body: '', timeoutMs: 60_000, livemode: false, url };
    const local = { ...params, allowPrivate: true };
    expect(await postOutside(createDenyCheck('127.0.0.0/8,::1'))(local)).toMatchObject(refused);
    expect(connections()).toBe(0);
    const outside = postOutside(createDenyCheck('198.18.7.0/24'));
    expect(await outside(local)).toMatchObject({ status: 200 });
  });

  test('to an address that is not admitted, or that it has not checked: it resolves a name only once', async () => {
    const receiver = await receivers.http();
    // A documentation name resolves nowhere by the system: only the pinned answer can connect.
    const url = `http://rebind.example.com:${receiver.port}/`;
    const first = ['127.0.0.2', '64:ff9b::7f00:1', '127.0.0.1'];
    const resolve = jest.fn<Promise<string[]>, []>().mockResolvedValue(['192.168.0.1']);
    resolve.mockResolvedValueOnce(first);
    const isDenied = createDenyCheck('127.0.0.2');
    expect(await post(url, { resolve, isDenied })).toMatchObject({ status: 200 });
    expect(resolve).toHaveBeenCalledTimes(1);
    expect(await post(url, { resolve, isDenied })).toMatchObject(refused);
    expect(receiver.connections()).toBe(1);
  });
});

describe('the deadline of a post covers', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['a receiver that never answers', () => undefined],
    ['headers that drip', (socket) => drip(socket, 'HTTP/1.1 200 OK\r\n', 'X-Drip: 1\r\n')],
    [
      'a body that drips after the status 200',
      (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n', 'x'),
    ],
    [
      'interim answers without end',
      (socket) => drip(socket, '', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
    ],
  ])('%s', async (_case, onConnection) => {
    const receiver = await receivers.tcp(onConnection);
    await expectTimeout(receiver.url);
  });

  test('a TLS handshake that never ends, and a name server that never answers', async () => {
    const receiver = await receivers.tcp();
    await expectTimeout(receiver.url.replace('http:', 'https:'));
    const resolve = () => new Promise<string[]>(() => undefined);
    const result = await post('https://example.com/', { timeoutMs: 300, resolve });
    expect(result).toMatchObject({ kind: 'timeout' });
  });

  function drip(socket: Socket, start: string, text: string): void {
    socket.write(start);
    const timer = setInterval(() => socket.write(text), 20);
    socket.on('close', () => clearInterval(timer));
  }

  async function expectTimeout(url: string): Promise<void> {
    const result = await post(url, { timeoutMs: 300 });
    expect(result).toEqual({
      outcome: 'error',
      kind: 'timeout',
      message: 'No complete answer within 0.3 s.',
      durationMs: expect.any(Number),
    });
    expect(result.durationMs).toBeGreaterThanOrEqual(295);
    // No receiver ends by itself; a busy machine may be late.
    expect(result.durationMs).toBeLessThan(60_000);
  }
});

describe('a response with a fault after its status line counts by that', () => {
  const LENGTH = 'Content-Length: 2\r\n';
  test.each([
    ['a length and chunks', `${LENGTH}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`],
    ['two equal lengths', `${LENGTH}${LENGTH}\r\nok`],
    ['two lengths', `${LENGTH}Content-Length: 3\r\n\r\nok`],
    ['a length that is no number', 'Content-Length: two\r\n\r\nok'],
    ['a space before a colon', `X-Powered-By : shop\r\n${LENGTH}\r\nok`],
    ['a header without a colon', `powered by shop\r\n${LENGTH}\r\nok`],
    ['a control character', `X-Trace: a\u0001b\r\n${LENGTH}\r\nok`],
    ['a chunk without a size', 'Transfer-Encoding: chunked\r\n\r\nok'],
    ['no last chunk', 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n'],
    ['a length too large', 'Content-Length: 100\r\n\r\nok'],
    ['no end of its headers', 'X-Powered-By: shop\r\n'],
    ['headers of 100 kB', `X-Long: ${'x'.repeat(100_000)}\r\n\r\n`],
  ])('%s', async (_case, rest) => {
    const lf = rest.replaceAll('\r\n', '\n');
    for (const [line, status] of [
      [`HTTP/1.1 200 OK\r\n${rest}`, 200],
      [`HTTP/1.1 200 OK\n${lf}`, 200],
      [`HTTP/1.0 200\r\n${rest}`, 200],
      [`HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\n${lf}`, 204],
      [`HTTP/1.1 503 Busy\r\n${rest}`, 503],
    ] as const) {
      const receiver = await receivers.tcp((socket) =>
        socket.once('data', () => socket.end(line, 'latin1')),
      );
      const result = await post(receiver.url);
      expect([line.slice(0, 60), result]).toMatchObject([expect.any(String), { status }]);
      expect(receiver.connections()).toBe(1);
    }
  });

  test('over TLS, or after a response on the same connection, with a note, and is not sent again', async () => {
    let posts = 0;
    const receiver = await receivers.https((request, response) => {
      posts += 1;
      if (posts === 1) response.end('ok');
      else request.socket.end('HTTP/1.1 200 OK\nContent-Length: 2\n\nok');
    });
    const ca = LOCALHOST_CERTIFICATE;
    expect(await post(receiver.url, { ca })).toMatchObject({ status: 200, excerpt: 'ok' });
    expect(await post(receiver.url, { ca })).toMatchObject({
      ...{ outcome: 'response', status: 200, excerpt: '' },
      note: expect.stringMatching(
        /^The answer was not valid HTTP \(HPE_\w+\)\. Its status line counts\.$/,
      ),
    });
    expect([posts, receiver.connections()]).toEqual([2, 1]);
  });
});

describe('a post returns an error when the receiver', () => {
  const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n';
  test.each([
    ['resets at once', 'reset', ''],
    ['closes within its status line', 'reset', 'HTTP/1.1 200 O'],
    ['switches protocols', 'reset', UPGRADE],
    ['does not speak HTTP', 'protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['sends a status that is none', 'protocol', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['sends an endless status line', 'protocol', `HTTP/1.1 200 ${'x'.repeat(70_000)}`],
  ])('%s', async (_case, kind, bytes) => {
    const receiver = await receivers.tcp((socket) => {
      if (kind === 'protocol') socket.write(bytes);
      else if (bytes === '') socket.once('data', () => socket.resetAndDestroy());
      else socket.once('data', () => socket.end(bytes));
    });
    expect(await post(receiver.url)).toMatchObject({ outcome: 'error', kind });
  });

  test('has a certificate that is not trusted, or for another name, or speaks plain HTTP where TLS is required', async () => {
    const requests: unknown[] = [];
    const { url } = await receivers.https((request) => requests.push(request.url));
    expect(await post(url)).toMatchObject({ outcome: 'error', kind: 'tls' });
    const other = { ca: LOCALHOST_CERTIFICATE, resolve: async () => ['127.0.0.1'] };
    const elsewhere = url.replace('localhost', 'other.localhost');
    expect(await post(elsewhere, other)).toMatchObject({ kind: 'tls' });
    expect(requests).toEqual([]);
    const plain = (await receivers.http()).url.replace('http:', 'https:');
    expect(await post(plain)).toMatchObject({ outcome: 'error', kind: 'tls' });
  });

  test('refuses the connection, or has a name that cannot be resolved', async () => {
    const receiver = await receiveHttp(() => undefined);
    await receiver.close();
    expect(await post(receiver.url)).toMatchObject({
      ...{ outcome: 'error', kind: 'connect' },
      message: 'The connection could not be made (ECONNREFUSED).',
    });
    const resolve = () => Promise.reject(new Error('ENOTFOUND'));
    const message = 'The host name nowhere.example.com could not be resolved.';
    const failed = { outcome: 'error', kind: 'dns', message };
    expect(await post('https://nowhere.example.com/', { resolve })).toMatchObject(failed);
  });
});
