import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { commandsIn, run, useProvisioning } from './cli';

const MAIN = join(__dirname, '..', '..', 'dist', 'src', 'cli', 'main.js');
const service = useProvisioning();

test('--json is accepted before and after the command, and prints one document', async () => {
  await service.account();
  const list = ['account', 'list'];
  const answers = [
    await service.cli('--json', ...list),
    await service.cli('account', '--json', 'list'),
    await service.cli(...list, '--json'),
  ];
  for (const { exit, stdout, stderr } of answers) {
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ has_more: false });
  }
});

/** Four or five seconds, and time for a busy machine; the driver's own limit is 30, waited for twice. */
const IN_TIME_MS = 60_000;

test('an unreachable MongoDB is reported in time, without its password', async () => {
  const env = { ...service.env, MONGODB_URI: 'mongodb://me:secret@127.0.0.1:1/' };
  const startedAt = performance.now();
  const { exit, stderr } = await run(env, 'account', 'list');
  expect(performance.now() - startedAt).toBeLessThan(IN_TIME_MS);
  expect(exit).toBe(1);
  expect(stderr).toMatch(/^MongoDB does not answer at 127\.0\.0\.1:1 \(address from the env/);
  expect(stderr).not.toContain('secret');
  for (const uri of ['localhost', 'mongodb://me:secret@', 'mongodb://me:secret@h/?what=1']) {
    const wrong = await run({ ...env, MONGODB_URI: uri }, 'account', 'list', '--json');
    expect(wrong.stderr).toContain('"code":"mongodb_uri_invalid"');
    expect(wrong.stderr).not.toContain('secret');
  }
});

test('a server that accepts connections and never answers is reported in time', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const address = silent.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const sockets = new Set<{ destroy(): void }>();
  silent.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)));
  const startedAt = performance.now();
  const env = { ...service.env, MONGODB_URI: `mongodb://127.0.0.1:${port}/` };
  const { stderr } = await run(env, 'account', 'list');
  expect(performance.now() - startedAt).toBeLessThan(IN_TIME_MS);
  expect(stderr).toContain('MongoDB does not answer');
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});

test('only encryption needs the key file, and reports what is wrong with it', async () => {
  const { account_id } = await service.account();
  const set = ['webhook', 'set', account_id, '--env', 'sandbox', '--url', 'http://localhost:1/'];
  const broken = join(service.folder, 'broken.json');
  writeFileSync(broken, '{"seal": "confidential"}');
  for (const [KEYS_FILE, code] of [
    [undefined, 'keys_file_missing'],
    [join(service.folder, 'none.json'), 'keys_file_missing'],
    [broken, 'keys_file_invalid'],
  ] as const) {
    const { cli, refusal } = commandsIn({ ...service.env, KEYS_FILE });
    const refused = await refusal(...set);
    expect(refused).toEqual({ code, message: expect.not.stringContaining('confidential') });
    expect((await cli('key', 'list', account_id)).exit).toBe(0);
  }
  const keys = JSON.parse(readFileSync(service.env['KEYS_FILE'] ?? '', 'utf8'));
  const word = 'changemechangemechangemechangemechangemechQ';
  writeFileSync(broken, JSON.stringify({ ...keys, fingerprint: word }));
  const weak = await commandsIn({ ...service.env, KEYS_FILE: broken }).cli(...set);
  expect(weak.stderr).toContain('a key must be random bytes, not text or a pattern');
  expect(weak.stderr).not.toContain(word);
});

test('a key file that others can read is a warning, except with --json', async () => {
  const { account_id } = await service.account();
  const KEYS_FILE = join(service.folder, 'shared.json');
  copyFileSync(service.env['KEYS_FILE'] ?? '', KEYS_FILE);
  chmodSync(KEYS_FILE, 0o644);
  const set = ['webhook', 'set', account_id, '--env', 'sandbox', '--url', 'http://localhost:1/'];
  const { cli } = commandsIn({ ...service.env, KEYS_FILE });
  const warning = `${KEYS_FILE}: others can read the key file\n`;
  expect(await cli(...set)).toMatchObject({ exit: 0, stderr: warning });
  expect(await cli(...set, '--json')).toMatchObject({ exit: 0, stderr: '' });
});

test('the process prints JSON on stdout with exit code 0, and errors on stderr with 1', async () => {
  const made = await spawned('account', 'create', '--name', 'Process', '--json');
  expect({ exit: made.exit, stderr: made.stderr }).toEqual({ exit: 0, stderr: '' });
  expect(JSON.parse(made.stdout)).toHaveProperty('sandbox_key');
  const refused = await spawned('account', 'show', 'acct_1', '--json');
  expect({ exit: refused.exit, stdout: refused.stdout }).toEqual({ exit: 1, stdout: '' });
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'account_not_found' } });
});

test('the process of a check that is refused ends', async () => {
  const refused = await spawned('connector', 'check', 'sandbox', '--only', 'payout.pays', '--json');
  expect({ exit: refused.exit, stdout: refused.stdout }).toEqual({ exit: 1, stdout: '' });
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'invalid_usage' } });
});

function spawned(...args: string[]) {
  const env = { PATH: process.env['PATH'], ...service.env };
  return new Promise<{ exit: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env }, (error, stdout, stderr) =>
      resolve({ exit: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}
