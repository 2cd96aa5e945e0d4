import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs';
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

test('a MongoDB that is away or never answers is reported in time, and a wrong address, without its password', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = Object(silent.address());
  const sockets = new Set<{ destroy(): void }>();
  silent.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)));
  const list = (at: string, ...more: string[]) =>
    run({ ...service.env, MONGODB_URI: at }, 'account', 'list', ...more);
  const startedAt = performance.now();
  const [away, late] = await Promise.all(
    [1, port].map((number) => list(`mongodb://me:secret@127.0.0.1:${number}/`)),
  );
  expect(performance.now() - startedAt).toBeLessThan(IN_TIME_MS);
  expect(away?.exit).toBe(1);
  expect(away?.stderr).toMatch(/^MongoDB does not answer at 127\.0\.0\.1:1 \(address from the env/);
  expect(late?.stderr).toContain('MongoDB does not answer');
  for (const uri of ['localhost', 'mongodb://me:secret@', 'mongodb://me:secret@h/?what=1']) {
    const { stderr } = await list(uri, '--json');
    expect(stderr).toContain('"code":"mongodb_uri_invalid"');
    expect(stderr + away?.stderr + late?.stderr).not.toContain('secret');
  }
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});

// What else is wrong with such files is in test/encryption.
describe('the key file', () => {
  /** Runs a command that encrypts, and one that does not. */
  async function openCommands(KEYS_FILE?: string) {
    const { account_id } = await service.account();
    const set = ['webhook', 'set', account_id, '--env', 'sandbox', '--url', 'http://localhost:1/'];
    return { ...commandsIn({ ...service.env, KEYS_FILE }), set, list: ['key', 'list', account_id] };
  }

  test('is needed for encryption alone, and what is wrong with it is reported', async () => {
    const broken = join(service.folder, 'broken.json');
    writeFileSync(broken, '{"seal": "confidential"}');
    for (const [path, code] of [
      [undefined, 'keys_file_missing'],
      [join(service.folder, 'none.json'), 'keys_file_missing'],
      [broken, 'keys_file_invalid'],
    ] as const) {
      const { cli, refusal, set, list } = await openCommands(path);
      const message = expect.not.stringContaining('confidential');
      expect(await refusal(...set)).toEqual({ code, message });
      expect((await cli(...list)).exit).toBe(0);
    }
  });

  test('that others can read is a warning, except with --json', async () => {
    const shared = join(service.folder, 'shared.json');
    copyFileSync(service.env['KEYS_FILE'] ?? '', shared);
    chmodSync(shared, 0o644);
    const { cli, set } = await openCommands(shared);
    const warning = `${shared}: others can read the key file\n`;
    expect(await cli(...set)).toMatchObject({ exit: 0, stderr: warning });
    expect(await cli(...set, '--json')).toMatchObject({ exit: 0, stderr: '' });
  });
});

test('the process prints JSON on stdout with exit code 0, or errors on stderr with 1, and ends', async () => {
  const [made, ...refused] = await Promise.all([
    spawned('account', 'create', '--name', 'Process', '--json'),
    spawned('account', 'show', 'acct_1', '--json'),
    // It has begun a check.
    spawned('connector', 'check', 'sandbox', '--only', 'payout.pays', '--json'),
  ]);
  expect({ exit: made.exit, stderr: made.stderr }).toEqual({ exit: 0, stderr: '' });
  expect(JSON.parse(made.stdout)).toHaveProperty('sandbox_key');
  const codes = refused.map(({ exit, stdout, stderr }) => {
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' });
    return JSON.parse(stderr).error.code;
  });
  expect(codes).toEqual(['account_not_found', 'invalid_usage']);
});

function spawned(...args: string[]) {
  const env = { PATH: process.env['PATH'], ...service.env };
  return new Promise<{ exit: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env }, (error, stdout, stderr) =>
      resolve({ exit: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}
