import { gzipSync } from 'node:zlib';
import { createDenyCheck } from '../../src/webhooks/address';
import { postOutside } from '../../src/webhooks/post';
import { LOCALHOST_CERTIFICATE } from './certificate';
import { post, useReceivers } from './posting';

const receivers = useReceivers();

describe('an answer', () => {
  test('carries the bytes, the headers and the path as they were given', async () => {
    const seen: unknown[] = [];
    const receiver = await receivers.http(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { headers, method, url } = request;
      seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      response.writeHead(202).end('thanks');
    });
    expect(await post(receiver.url, { body: '{"name":"Zoë"}' })).toEqual({
      outcome: 'response',
      status: 202,
      excerpt: 'thanks',
      durationMs: expect.any(Number),
    });
    expect(seen).toEqual([
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
          connection: 'close',
        },
      },
    ]);
  });

  test('over TLS is taken from a receiver whose certificate is trusted', async () => {
    const receiver = await receivers.https((_request, response) => response.end('ok'));
    const result = await post(receiver.url, { ca: LOCALHOST_CERTIFICATE });
    expect(result).toMatchObject({ outcome: 'response', status: 200, excerpt: 'ok' });
  });

  test.each([301, 302, 307, 308])(
    'of %i is the answer: the redirect is not followed',
    async (status) => {
      const target = await receivers.http();
      const receiver = await receivers.http((_request, response) =>
        response.writeHead(status, { Location: target.url }).end(),
      );
      expect(await post(receiver.url)).toMatchObject({ outcome: 'response', status });
      expect(target.connections()).toBe(0);
    },
  );

  test('is read no further than 64 KiB, and kept no further than 1 KiB', async () => {
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
    // What the sockets' buffers took; an endless answer would have gone far beyond.
    expect(written).toBeLessThan(32 * 1_024 * 1_024);
  });

  test('is never decompressed', async () => {
    const packed = gzipSync('a'.repeat(1_000_000));
    const receiver = await receivers.http((_request, response) =>
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(packed),
    );
    const result = await post(receiver.url);
    expect(result).toMatchObject({ status: 200 });
    if (result.outcome === 'response') expect(result.excerpt).not.toContain('aaaa');
  });

  test('is cut between characters, never inside one', async () => {
    const receiver = await receivers.http((_request, response) =>
      response.end(`x${'é'.repeat(1_000)}`),
    );
    expect(await post(receiver.url)).toMatchObject({ excerpt: `x${'é'.repeat(511)}` });
  });

  test('tells how long to wait, in seconds', async () => {
    const receiver = await receivers.http((_request, response) =>
      response.writeHead(503, { 'Retry-After': '120' }).end(),
    );
    expect(await post(receiver.url)).toMatchObject({ status: 503, retryAfterSeconds: 120 });
  });
});

describe('nothing is connected to', () => {
  test.each(['127.0.0.1', '0x7f.1', '2130706433', '[::ffff:7f00:1]', '0.0.0.0', '[::]'])(
    'at the literal %s, which no name lookup would catch',
    async (host) => {
      const receiver = await receivers.http();
      const url = `https://${host}:${receiver.port}/`;
      const result = await post(url, { allowPrivate: false });
      expect(result).toMatchObject({ outcome: 'error', kind: 'refused_address' });
      expect(receiver.connections()).toBe(0);
    },
  );

  test('when one of several addresses is not public', async () => {
    const receiver = await receivers.http();
    const resolve = async () => ['93.184.216.34', '127.0.0.1'];
    const url = `https://example.com:${receiver.port}/`;
    const result = await post(url, { allowPrivate: false, resolve });
    expect(result).toMatchObject({ kind: 'refused_address' });
    expect(receiver.connections()).toBe(0);
  });

  test('in a network that the operator keeps from webhooks', async () => {
    const receiver = await receivers.http();
    const { url } = receiver;
    const posts = { headers: {}, body: '', timeoutMs: 60_000, allowPrivate: true, url };
    const outside = postOutside(createDenyCheck('127.0.0.0/8,::1'));
    expect(await outside(posts)).toMatchObject({ kind: 'refused_address' });
    expect(receiver.connections()).toBe(0);
    expect(await postOutside(createDenyCheck('198.18.7.0/24'))(posts)).toMatchObject({
      status: 200,
    });
  });

  test('on this machine for a live endpoint, though the sandbox may', async () => {
    const receiver = await receivers.http();
    expect(await post(receiver.url, { allowPrivate: false })).toMatchObject({
      kind: 'refused_address',
    });
    expect(receiver.connections()).toBe(0);
    expect(await post(receiver.url)).toMatchObject({ status: 200 });
  });

  test('but the judged address: a name that changes its mind is asked once only', async () => {
    const receiver = await receivers.http();
    // A documentation name resolves nowhere by the system: only the pinned answer can connect.
    const answers = [['127.0.0.1'], ['192.168.0.1'], ['10.0.0.1']];
    let asked = 0;
    const resolve = async () => answers[asked++] ?? [];
    const url = `http://rebind.example.com:${receiver.port}/`;
    expect(await post(url, { resolve })).toMatchObject({ status: 200 });
    expect(asked).toBe(1);
    expect(await post(url, { resolve })).toMatchObject({ kind: 'refused_address' });
    expect(receiver.connections()).toBe(1);
  });

  test('twice: each attempt makes a connection of its own', async () => {
    const receiver = await receivers.http();
    await post(receiver.url);
    await post(receiver.url);
    expect(receiver.connections()).toBe(2);
  });
});
