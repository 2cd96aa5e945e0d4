import type { Socket } from 'node:net';
import { LOCALHOST_CERTIFICATE } from './certificate';
import { post, useReceivers } from './posting';
import { receiveHttp } from './receiver';

const receivers = useReceivers();

/** Short deadline for receivers that never end by themselves. */
const SHORT = { timeoutMs: 300 };

describe('the deadline covers', () => {
  test('a receiver that never answers', async () => {
    const receiver = await receivers.http(() => undefined);
    await expectTimeout(receiver);
  });

  test('headers that drip', async () => {
    const receiver = await receivers.tcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      drip(socket, 'X-Drip: 1\r\n');
    });
    await expectTimeout(receiver);
  });

  test('a body that drips, though its status was 200', async () => {
    const receiver = await receivers.tcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n');
      drip(socket, 'x');
    });
    await expectTimeout(receiver);
  });

  test('interim answers without end', async () => {
    const receiver = await receivers.tcp((socket) =>
      drip(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'),
    );
    await expectTimeout(receiver);
  });

  test('a TLS handshake that never ends', async () => {
    const receiver = await receivers.tcp();
    await expectTimeout({ url: receiver.url.replace('http:', 'https:') });
  });

  test('a name server that never answers', async () => {
    const resolve = () => new Promise<string[]>(() => undefined);
    expect(await post('https://example.com/', { ...SHORT, resolve })).toMatchObject({
      kind: 'timeout',
    });
  });

  async function expectTimeout({ url }: { url: string }): Promise<void> {
    const result = await post(url, SHORT);
    expect(result).toEqual({
      outcome: 'error',
      kind: 'timeout',
      message: 'No complete answer within 0.3 s.',
      durationMs: expect.any(Number),
    });
    expect(result.durationMs).toBeGreaterThanOrEqual(295);
    // None of them ends by itself; a busy machine may be late.
    expect(result.durationMs).toBeLessThan(60_000);
  }
});

describe('an error is a value when the receiver', () => {
  test('refuses the connection', async () => {
    const receiver = await receiveHttp(() => undefined);
    await receiver.close();
    expect(await post(receiver.url)).toMatchObject({
      outcome: 'error',
      kind: 'connect',
      message: 'The connection could not be made (ECONNREFUSED).',
    });
  });

  test.each([
    ['resets at once', ''],
    ['closes amid its headers', 'HTTP/1.1 200 OK\r\nX-Half: '],
    ['closes amid its body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'],
    [
      'switches protocols',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
    ],
  ])('%s', async (_case, bytes) => {
    const receiver = await receivers.tcp((socket) => {
      socket.once('data', () => {
        if (bytes === '') socket.resetAndDestroy();
        else socket.end(bytes);
      });
    });
    expect(await post(receiver.url)).toMatchObject({ outcome: 'error', kind: 'reset' });
  });

  test.each([
    ['does not speak HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['sends headers without end', `HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(70_000)}`],
    [
      'smuggles a second length',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    ],
  ])('%s', async (_case, bytes) => {
    const receiver = await receivers.tcp((socket) => socket.write(bytes));
    expect(await post(receiver.url)).toMatchObject({ outcome: 'error', kind: 'protocol' });
  });

  test('has a certificate that nobody vouches for', async () => {
    const requests: unknown[] = [];
    const receiver = await receivers.https((request) => requests.push(request.url));
    expect(await post(receiver.url)).toMatchObject({ outcome: 'error', kind: 'tls' });
    expect(requests).toEqual([]);
  });

  test('has a certificate for another name', async () => {
    const receiver = await receivers.https();
    const url = receiver.url.replace('localhost', 'other.localhost');
    const resolve = async () => ['127.0.0.1'];
    expect(await post(url, { ca: LOCALHOST_CERTIFICATE, resolve })).toMatchObject({ kind: 'tls' });
  });

  test('speaks plain HTTP where TLS was called for', async () => {
    const receiver = await receivers.http();
    const url = receiver.url.replace('http:', 'https:');
    expect(await post(url)).toMatchObject({ outcome: 'error', kind: 'tls' });
  });

  test('has a name that leads nowhere', async () => {
    const resolve = () => Promise.reject(new Error('ENOTFOUND'));
    expect(await post('https://nowhere.example.com/', { resolve })).toMatchObject({ kind: 'dns' });
  });
});

function drip(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), 20);
  socket.on('close', () => clearInterval(timer));
}
