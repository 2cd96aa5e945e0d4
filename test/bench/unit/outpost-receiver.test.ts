import { once } from 'node:events';
import { connect } from 'node:net';
import { type Receiver, startReceiver } from '../../../bench/outpost/receiver';

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

const { signal } = new AbortController();

async function post(id: string): Promise<number> {
  const response = await fetch(receiver.url, { method: 'POST', body: JSON.stringify({ id }) });
  return response.status;
}

test('each post is answered 200 and counts, also of an event that came before', async () => {
  expect(await post('a')).toBe(200);
  expect(await post('a')).toBe(200);
  expect(receiver.receipts.get('a')).toHaveLength(2);
});

test('it waits until so many events have arrived', async () => {
  const waiting = receiver.waitFor(['b', 'c', 'd'], { count: 2, silentMs: 5_000, signal });
  await post('b');
  await post('c');
  expect(await waiting).toBe(true);
});

test('it waits no longer once nothing arrives', async () => {
  const wanted = { count: 1, silentMs: 50, signal };
  expect(await receiver.waitFor(['never'], wanted)).toBe(false);
});

test('a post whose sender was killed does not count', async () => {
  const { port, hostname } = new URL(receiver.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"id":"e"');
  socket.resetAndDestroy();
  await post('f');
  expect([receiver.receipts.has('e'), receiver.receipts.has('f')]).toEqual([false, true]);
});
