import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { transformFileSync } from '@swc/core';
import { createGate, createNamedGates } from '../../../src/base/gate';
import { describeProgram, PACKAGE_ROOT, PROGRAM } from '../../../src/base/program';
import { gate as holdBack } from '../../support/gate';

test('the commands of a checkout are npm scripts', () => {
  expect(PACKAGE_ROOT).toBe(join(__dirname, '../../..'));
  expect(PROGRAM).toEqual({ start: 'npm start', cli: 'npm run -s cli --' });
  const root = mkdtempSync(join(tmpdir(), 'program-'));
  writeFileSync(join(root, 'tsconfig.json'), '{}');
  expect(describeProgram(root, '/elsewhere')).toEqual(PROGRAM);
  rmSync(root, { recursive: true });
});

test('the commands of a package begin with npx where it is installed, else with its path', () => {
  const npx = 'npx durable-payments';
  const installed = describeProgram('/shop/node_modules/durable-payments', '/shop');
  expect(installed).toEqual({ start: `${npx} start`, cli: `${npx} cli` });
  expect(describeProgram('/cache/a b/durable-payments', '/shop')).toEqual({
    start: "node '/cache/a b/durable-payments/dist/stack/bin.js' start",
    cli: "node '/cache/a b/durable-payments/dist/src/cli/main.js'",
  });
});

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

const LISTEN = 'listenForStop(log);';
const WORK = 'listenForStop(log)(async () => process.exit(3));';
const LATE = "process.once('disconnect', () => listenForStop(log));";
const SLOW = `const slowly = () => new Promise((done) => setTimeout(done, 100));
  listenForStop(log)(async () => { await slowly(); process.exit(3); });`;
const FAIL = "listenForStop(log)(async () => { throw new Error('torn'); });";

const disconnect = (child: ChildProcess) => child.disconnect();
const terminate = (child: ChildProcess) => void child.kill('SIGTERM');
const interrupt = (child: ChildProcess) => void child.kill('SIGINT');

test.each([
  ['ends at once when its launcher ends during its start', LISTEN, [disconnect], 0, 'disconnect'],
  [
    'ends at once when its launcher has ended before it listens',
    LATE,
    [disconnect],
    0,
    'disconnect',
  ],
  ['ends at once by SIGTERM during its start', LISTEN, [terminate], 0, 'SIGTERM'],
  ['ends by its own stop once it works', WORK, [terminate], 3, 'SIGTERM'],
  ['stops once for several signals', SLOW, [terminate, disconnect, interrupt], 3, '\\w+'],
  ['ends with exit code 1 when its stop fails', FAIL, [interrupt], 1, 'SIGINT\ntorn'],
])('a process %s', async (_, script, acts, code, said) => {
  const ended = await run(script, (child) => {
    for (const act of acts) act(child);
  });
  expect(ended).toEqual({ code, said: expect.stringMatching(new RegExp(`^${said}\n$`)) });
});

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a gate lets as many calls through as it may, and the others in order, also after one that fails', async () => {
  const gate = createGate(2);
  const works = ['a', 'b', 'c', 'd'].map((name) => ({ name, ...holdBack() }));
  const begun: string[] = [];
  const running = works.map(({ name, opened }) =>
    gate(async () => {
      begun.push(name);
      await opened;
      if (name === 'b') throw new Error('b failed');
      return name;
    }).catch((error: unknown) => String(error)),
  );
  await settled();
  expect(begun).toEqual(['a', 'b']);
  works[1]?.release();
  await settled();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const { release } of works) release();
  expect(await Promise.all(running)).toEqual(['a', 'Error: b failed', 'c', 'd']);
  expect(await gate(async () => 'free')).toBe('free');
});

test('each name of gates has its own places, and its own limit of waiting calls', async () => {
  const gates = createNamedGates({ atOnce: 1, waitingMax: 1 });
  const { opened, release } = holdBack();
  const begun: string[] = [];
  const run = (name: string, call: string, failing = false) =>
    gates
      .run(name, async () => {
        begun.push(call);
        await opened;
        if (failing) throw new Error('failed');
      })
      .catch(() => {});
  const running = [run('a', 'a1', true), run('a', 'a2')];
  expect([gates.isFull('a'), gates.isFull('b')]).toEqual([true, false]);
  running.push(run('b', 'b1'));
  expect(gates.isFull('b')).toBe(false);
  await settled();
  expect(begun).toEqual(['a1', 'b1']);
  release();
  await Promise.all(running);
  expect(begun).toEqual(['a1', 'b1', 'a2']);
  expect([gates.isFull('a'), gates.isFull('b')]).toEqual([false, false]);
});

test('the place of a call for which others wait rests for a multiple of its time', async () => {
  jest.useFakeTimers();
  try {
    const gate = createGate(1, { rest: 2 });
    const begun: number[] = [];
    const call = () =>
      gate(async () => {
        begun.push(Date.now());
        await new Promise((resolve) => setTimeout(resolve, 100));
      });
    const start = Date.now();
    const running = [call(), call()];
    await jest.advanceTimersByTimeAsync(299);
    expect(begun).toEqual([start]);
    await jest.advanceTimersByTimeAsync(201);
    await Promise.all(running);
    expect(begun).toEqual([start, start + 300]);
    void call();
    await jest.advanceTimersByTimeAsync(0);
    // No call waited for the last one.
    expect(begun).toHaveLength(3);
  } finally {
    jest.useRealTimers();
  }
});
