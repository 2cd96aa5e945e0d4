import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { closeServer, createHttpServer } from '../../../src/api/server';

const HALF_A_HEAD = 'GET / HTTP/1.1\r\nHost: x\r\n';
const REQUEST = `${HALF_A_HEAD}\r\n`;

let server: Server;
let clients: Socket[];
beforeEach(() => {
  clients = [];
});
afterEach(async () => {
  for (const client of clients) client.destroy();
  await closeServer(server, 0);
});

type Limits = Parameters<typeof createHttpServer>[1];

/** Connects a client that never closes its side, to a server of its own. */
async function open(limits: Limits, listener: RequestListener = (_, response) => response.end()) {
  server = createHttpServer(listener, limits).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  client.on('error', () => {});
  clients.push(client);
  const [socket] = await accepted;
  return { client, closed: new Promise<void>((resolve) => socket.once('close', () => resolve())) };
}

test.each([
  ['nothing', ''],
  ['half a head', HALF_A_HEAD],
  ['no HTTP', 'HELLO\r\n\r\n'],
])('a client that sends %s and never closes is answered and disconnected', async (_, bytes) => {
  const limits = {
    ...{ headersTimeout: 50, connectionsCheckingInterval: 20, lingerTimeout: 100 },
    inactivityTimeout: 600_000,
  };
  const { client, closed } = await open(limits);
  const answer = once(client, 'data');
  client.write(bytes);
  expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 40[08] /);
  await closed;
});

test('a client that continues its slow head after the refusal is disconnected', async () => {
  const limits = { headersTimeout: 50, connectionsCheckingInterval: 20, lingerTimeout: 200 };
  const { client, closed } = await open(limits);
  client.write(HALF_A_HEAD);
  client.resume();
  const sending = setInterval(() => client.write('X: y\r\n'), 10);
  await closed;
  clearInterval(sending);
});

test('a client that does not read its answer is disconnected', async () => {
  const { client, closed } = await open({ inactivityTimeout: 100 }, (_, response) => {
    // More than the buffers of both sides hold.
    response.end(Buffer.alloc(32 * 1024 * 1024));
  });
  client.pause();
  client.write(REQUEST);
  await closed;
});
