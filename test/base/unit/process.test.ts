import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { transformFileSync } from '@swc/core';

/** Folder with `src/base/process.ts` as Node runs it, and a process that uses it. */
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'process-'));
  const { code } = transformFileSync(resolve('src/base/process.ts'), {
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  });
  writeFileSync(join(folder, 'process.js'), code);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a process until it is up, acts on it, and waits for its end. */
async function run(script: string, act: (child: ChildProcess) => void) {
  const file = join(folder, 'main.js');
  const begin = `
    const { listenForStop } = require('./process.js');
    const log = { info: ({ code }) => console.log(code), error: ({ err }) => console.log(err.message) };
    setInterval(() => {}, 1_000);`;
  writeFileSync(file, `${begin}\n${script}\nprocess.send('up');`);
  const child = fork(file, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  if (child.stdout === null) throw new Error('The process has no output.');
  const said = text(child.stdout);
  // It does not close where its channel was closed by hand.
  const exited = once(child, 'exit');
  await once(child, 'message');
  act(child);
  const [code] = await exited;
  return { code, said: await said };
}

test('a process ends at once when its launcher ends during its start', async () => {
  const gone = await run('listenForStop(log);', (child) => child.disconnect());
  expect(gone).toEqual({ code: 0, said: 'disconnect\n' });
});

test('a process ends at once when its launcher has ended before it listens', async () => {
  const late = "process.once('disconnect', () => listenForStop(log));";
  const gone = await run(late, (child) => child.disconnect());
  expect(gone).toEqual({ code: 0, said: 'disconnect\n' });
});

test('SIGTERM ends a starting process at once, and a working one by its own stop', async () => {
  const starting = await run('listenForStop(log);', (child) => child.kill('SIGTERM'));
  expect(starting).toEqual({ code: 0, said: 'SIGTERM\n' });
  const working = await run('listenForStop(log)(async () => process.exit(3));', (child) =>
    child.kill('SIGTERM'),
  );
  expect(working).toEqual({ code: 3, said: 'SIGTERM\n' });
});

test('a process stops once for several signals', async () => {
  const slow = `
    const slowly = () => new Promise((done) => setTimeout(done, 100));
    listenForStop(log)(async () => {
      await slowly();
      process.exit(3);
    });`;
  const { code, said } = await run(slow, (child) => {
    child.kill('SIGTERM');
    child.disconnect();
    child.kill('SIGINT');
  });
  expect(code).toBe(3);
  expect(said.trim().split('\n')).toHaveLength(1);
});

test('a stop that fails ends the process with exit code 1', async () => {
  const failing = "listenForStop(log)(async () => { throw new Error('torn'); });";
  const failed = await run(failing, (child) => child.kill('SIGINT'));
  expect(failed).toEqual({ code: 1, said: 'SIGINT\ntorn\n' });
});
