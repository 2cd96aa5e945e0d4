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

test('a look-up asks the name server for both kinds of address', async () => {
  expect(await resolver()('shop.example.com')).toEqual(['93.184.216.34']);
  expect(server.questions).toEqual(['shop.example.com', 'shop.example.com']);
});

test('a look-up of an unknown name is refused', async () => {
  await expect(resolver()('none.example.com')).rejects.toThrow('none.example.com has no address');
});

test('six names whose server is silent delay no other name, and are given up', async () => {
  const resolve = resolver();
  const failed: string[] = [];
  const silent = [1, 2, 3, 4, 5, 6].map((n) =>
    resolve(`slow${n}.example.com`).catch(() => failed.push(`slow${n}`)),
  );
  expect(await resolve('shop.example.com')).toEqual(['93.184.216.34']);
  expect(failed).toEqual([]);
  await Promise.all(silent);
  expect(failed).toHaveLength(6);
});

test('concurrent callers share one look-up of a name', async () => {
  const resolve = resolver();
  const lookUps = Array.from({ length: 50 }, () => resolve('Shop.Example.com'));
  expect(new Set((await Promise.all(lookUps)).flat())).toEqual(new Set(['93.184.216.34']));
  expect(server.questions).toHaveLength(2);
});

test.each([
  ['an answer for 10 seconds', 'shop.example.com', [0, 9_999, 10_000]],
  ['a failure for 5 seconds', 'none.example.com', [0, 4_999, 5_000]],
])('a resolver caches %s', async (_, name, times) => {
  let nowMs = 0;
  const resolve = resolver({ now: () => nowMs });
  const questions: number[] = [];
  for (nowMs of times) {
    await resolve(name).catch(() => undefined);
    questions.push(server.questions.length);
  }
  expect(questions).toEqual([2, 2, 4]);
});

test('the hosts file comes before the name server, and localhost needs neither', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hosts-'));
  const hostsFile = join(folder, 'hosts');
  const lines = ['10.0.0.7\tbank.example.com Till # ours', '::1 localhost', 'junk bad.example.com'];
  writeFileSync(hostsFile, lines.join('\n'));
  const resolve = resolver({ hostsFile });
  expect(await resolve('BANK.example.com')).toEqual(['10.0.0.7']);
  expect(await resolve('till')).toEqual(['10.0.0.7']);
  expect(await resolve('localhost')).toEqual(['::1', '127.0.0.1']);
  expect(await resolve('shop.localhost')).toEqual(['127.0.0.1', '::1']);
  expect(server.questions).toEqual([]);
  const bare = resolver({ hostsFile: join(folder, 'none') });
  expect(await bare('localhost')).toEqual(['127.0.0.1', '::1']);
  rmSync(folder, { recursive: true });
});

test('a post to a name whose server is silent fails with that reason', async () => {
  const resolve = resolver({ timeoutMs: 100 });
  expect(await post('https://slow.example.com/', { resolve })).toMatchObject({
    outcome: 'error',
    kind: 'dns',
    message: 'The host name slow.example.com could not be resolved.',
  });
});
