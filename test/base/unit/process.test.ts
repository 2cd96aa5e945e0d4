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

/** Runs a process up to what it sends, lets something befall it, and waits for its end. */
async function ended(script: string, befall: (child: ChildProcess) => void) {
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
  befall(child);
  const [code] = await exited;
  return { code, said: await said };
}

test('a process whose launcher dies while it starts ends at once', async () => {
  const gone = await ended('listenForStop(log);', (child) => child.disconnect());
  expect(gone).toEqual({ code: 0, said: 'disconnect\n' });
});

test('so does one whose launcher was dead before it listened', async () => {
  const late = "process.once('disconnect', () => listenForStop(log));";
  const gone = await ended(late, (child) => child.disconnect());
  expect(gone).toEqual({ code: 0, said: 'disconnect\n' });
});

test('SIGTERM ends a process that starts, and one that works stops in its own way', async () => {
  const starting = await ended('listenForStop(log);', (child) => child.kill('SIGTERM'));
  expect(starting).toEqual({ code: 0, said: 'SIGTERM\n' });
  const working = await ended('listenForStop(log)(async () => process.exit(3));', (child) =>
    child.kill('SIGTERM'),
  );
  expect(working).toEqual({ code: 3, said: 'SIGTERM\n' });
});

test('it stops once, however often it is asked', async () => {
  const slow = `
    const slowly = () => new Promise((done) => setTimeout(done, 100));
    listenForStop(log)(async () => {
      await slowly();
      process.exit(3);
    });`;
  const { code, said } = await ended(slow, (child) => {
    child.kill('SIGTERM');
    child.disconnect();
    child.kill('SIGINT');
  });
  expect(code).toBe(3);
  expect(said.trim().split('\n')).toHaveLength(1);
});

test('a stop that fails ends it with an exit code of its own', async () => {
  const failing = "listenForStop(log)(async () => { throw new Error('torn'); });";
  const failed = await ended(failing, (child) => child.kill('SIGINT'));
  expect(failed).toEqual({ code: 1, said: 'SIGINT\ntorn\n' });
});
