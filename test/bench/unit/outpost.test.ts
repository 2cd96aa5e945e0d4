import { once } from 'node:events';
import { connect } from 'node:net';
import { startReceiver } from '../../../bench/outpost/receiver';
import {
  outpostConfig,
  rabbitmqEnvironment,
  redisArguments,
} from '../../../bench/outpost/settings';
import { useFixture } from '../../support/fixture';

const receiver = useFixture(startReceiver, (opened) => opened.close());
const { signal } = new AbortController();

const post = async (id: string) =>
  (await fetch(receiver.url, { method: 'POST', body: JSON.stringify({ id }) })).status;

test('the receiver answers each post with 200 and counts it, also a repeated one', async () => {
  expect([await post('a'), await post('a')]).toEqual([200, 200]);
  expect(receiver.receipts.get('a')).toHaveLength(2);
});

test('the receiver waits for a number of events, and no longer once nothing arrives', async () => {
  const waiting = receiver.waitFor(['b', 'c', 'd'], { count: 2, silentMs: 5_000, signal });
  await post('b');
  await post('c');
  expect(await waiting).toBe(true);
  expect(await receiver.waitFor(['never'], { count: 1, silentMs: 50, signal })).toBe(false);
});

test('the receiver does not count a post whose sender was killed', async () => {
  const { port, hostname } = new URL(receiver.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"id":"e"');
  socket.resetAndDestroy();
  await post('f');
  expect([receiver.receipts.has('e'), receiver.receipts.has('f')]).toEqual([false, true]);
});

test('Outpost is as durable and concurrent as the product, and has files and ports of its own', () => {
  const ports = { api: 1, redis: 2, postgres: 3, rabbitmq: 4, distribution: 5, epmd: 6 };
  const secrets = { apiKey: 'key', jwt: 'jwt', encryption: 'e'.repeat(32) };
  expect(JSON.parse(outpostConfig(ports, secrets))).toMatchObject({
    delivery_max_concurrency: 200,
    delivery_timeout_seconds: 10,
    disable_telemetry: true,
  });
  expect(redisArguments(2, '/tmp').join(' ')).toContain('--appendonly yes --appendfsync always');
  const { PATH, ...env } = rabbitmqEnvironment(ports, '/tmp/rabbitmq', '/usr/bin');
  const files = Object.values(env).filter((value) => value?.includes('/'));
  expect(files.filter((value) => !value?.startsWith('/tmp/rabbitmq'))).toEqual([]);
});
