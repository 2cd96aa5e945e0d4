import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createResolver } from '../../src/webhooks/names';
import { type NameServer, serveNames } from './name-server';
import { post } from './posting';

const KNOWN = new Map([
  ['shop.example.com', '93.184.216.34'],
  ['slow.example.com', 'silent'],
]);

let server: NameServer;
beforeEach(async () => {
  server = await serveNames((name) => (name.startsWith('slow') ? 'silent' : KNOWN.get(name)));
});
afterEach(() => server.close());

function resolver(options: Parameters<typeof createResolver>[0] = {}) {
  return createResolver({ servers: [server.address], timeoutMs: 20_000, ...options });
}

test('a name is asked for at the name server, both kinds of address', async () => {
  expect(await resolver()('shop.example.com')).toEqual(['93.184.216.34']);
  expect(server.asked).toEqual(['shop.example.com', 'shop.example.com']);
});

test('a name that is not there is refused', async () => {
  await expect(resolver()('none.example.com')).rejects.toThrow('none.example.com has no address');
});

test('six names whose server is silent hold up no other name, and are given up', async () => {
  const resolve = resolver();
  const given: string[] = [];
  const silent = [1, 2, 3, 4, 5, 6].map((n) =>
    resolve(`slow${n}.example.com`).catch(() => given.push('up')),
  );
  expect(await resolve('shop.example.com')).toEqual(['93.184.216.34']);
  expect(given).toEqual([]);
  await Promise.all(silent);
  expect(given).toHaveLength(6);
});

test('one look-up is under way for a name, however many ask', async () => {
  const resolve = resolver();
  const asking = Array.from({ length: 50 }, () => resolve('Shop.Example.com'));
  expect(new Set((await Promise.all(asking)).flat())).toEqual(new Set(['93.184.216.34']));
  expect(server.asked).toHaveLength(2);
});

test('an answer is kept for 10 seconds, a failure for 5', async () => {
  let nowMs = 0;
  const resolve = resolver({ now: () => nowMs });
  const asked: number[] = [];
  for (nowMs of [0, 9_999, 10_000]) {
    await resolve('shop.example.com');
    asked.push(server.asked.length);
  }
  expect(asked).toEqual([2, 2, 4]);
  for (nowMs of [20_000, 24_999, 25_000]) {
    await resolve('none.example.com').catch(() => undefined);
    asked.push(server.asked.length);
  }
  expect(asked.slice(3)).toEqual([6, 6, 8]);
});

test("this machine's own table comes first, and localhost is this machine without any", async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hosts-'));
  const hostsFile = join(folder, 'hosts');
  const lines = ['10.0.0.7\tbank.example.com Till # ours', '::1 localhost', 'junk bad.example.com'];
  writeFileSync(hostsFile, lines.join('\n'));
  const resolve = resolver({ hostsFile });
  expect(await resolve('BANK.example.com')).toEqual(['10.0.0.7']);
  expect(await resolve('till')).toEqual(['10.0.0.7']);
  expect(await resolve('localhost')).toEqual(['::1', '127.0.0.1']);
  expect(await resolve('shop.localhost')).toEqual(['127.0.0.1', '::1']);
  expect(server.asked).toEqual([]);
  const bare = resolver({ hostsFile: join(folder, 'none') });
  expect(await bare('localhost')).toEqual(['127.0.0.1', '::1']);
  rmSync(folder, { recursive: true });
});

test('a post to a name whose server is silent says that the name was not found', async () => {
  const resolve = resolver({ timeoutMs: 100 });
  expect(await post('https://slow.example.com/', { resolve })).toMatchObject({
    outcome: 'error',
    kind: 'dns',
    message: 'The host name slow.example.com could not be resolved.',
  });
});
