import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../../../src/base/process-table';
import { startChild, waitUntilUp } from '../../../stack/child-process';
import { type Part, type PartChange, type Supervisor, supervise } from '../../../stack/supervisor';
import { gate } from '../../support/gate';
import { useTempFolder } from '../../unit/temp-folder';

const QUICK = { backoffMsMin: 20, backoffMsMax: 80, steadyMs: 100_000 };
const RUNS = 'setInterval(() => {}, 1000)';
const ENDS = 'process.exit(3)';
const STUBBORN = `process.on('SIGTERM', () => {}); require('fs').writeFileSync(process.argv[1], '');
  ${RUNS}`;

let changes: PartChange[];
let supervisor: Supervisor | undefined;
beforeEach(() => {
  changes = [];
});
afterEach(async () => {
  supervisor?.hurry();
  await supervisor?.stop();
});
const folder = useTempFolder();

function createPart(name: string, script: string, ...args: string[]): Part {
  return {
    name,
    start: async () => {
      const child = await startChild({
        name,
        command: process.execPath,
        args: ['-e', script, ...args],
        logFile: folder.at(`${name}.log`),
        graceMs: 60_000,
      });
      const stop = async (): Promise<void> => {
        appendFileSync(folder.at('order'), `${name} `);
        await child.stop();
      };
      return { ...child, stop };
    },
  };
}

function watch(...stages: Part[][]): Supervisor {
  supervisor = supervise(stages, (change) => void changes.push(change), QUICK);
  return supervisor;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

const listPids = (name: string): number[] =>
  changes.filter((change) => change.part === name).flatMap(({ pid }) => pid ?? []);

test('a killed part starts again under a new pid, and the others keep running', async () => {
  await watch([createPart('a', RUNS), createPart('b', RUNS)]).start();
  const [killed = 0] = listPids('a');
  process.kill(killed, 'SIGKILL');
  await until(() => listPids('a').length === 2);
  expect(changes.filter((change) => change.what === 'down')).toEqual([
    { part: 'a', pid: null, what: 'down', reason: 'was ended by SIGKILL', retryInMs: 20 },
  ]);
  expect(listPids('a').map(isAlive)).toEqual([false, true]);
  expect(listPids('b')).toHaveLength(1);
});

test('a part that keeps ending starts again after waits that double up to the longest', async () => {
  await watch([createPart('a', ENDS)]).start();
  const waits = () => changes.flatMap((change) => change.retryInMs ?? []);
  await until(() => waits().length >= 5);
  expect(waits().slice(0, 5)).toEqual([20, 40, 80, 80, 80]);
  expect(changes[1]).toMatchObject({ what: 'down', reason: 'ended with exit code 3' });
});

test('a restart stops a part as usual and starts it at once', async () => {
  await watch([createPart('a', RUNS), createPart('b', RUNS)]).start();
  await supervisor?.restart('a');
  await until(() => listPids('a').length === 2);
  expect(changes.slice(2).map(({ part, what }) => [part, what])).toEqual([
    ['a', 'restarting'],
    ['a', 'up'],
  ]);
  expect(listPids('a').map(isAlive)).toEqual([false, true]);
  expect(folder.read('order')).toBe('a ');
});

test('a restart ends the wait of a part that keeps ending', async () => {
  const slow = { ...QUICK, backoffMsMin: 60_000, backoffMsMax: 60_000 };
  supervisor = supervise([[createPart('a', ENDS)]], (change) => void changes.push(change), slow);
  await supervisor.start();
  await until(() => changes.some(({ what }) => what === 'down'));
  await supervisor.restart('a');
  await until(() => listPids('a').length === 2);
});

test('a part that fails to start again is tried once more', async () => {
  let starts = 0;
  const shy = createPart('shy', RUNS);
  const start = (signal: AbortSignal) => {
    starts += 1;
    return starts === 2 ? Promise.reject(new Error('port in use')) : shy.start(signal);
  };
  await watch([{ ...shy, start }]).start();
  process.kill(listPids('shy')[0] ?? 0, 'SIGKILL');
  await until(() => listPids('shy').length === 2);
  expect(changes.map(({ what }) => what)).toEqual(['up', 'down', 'failed to start', 'up']);
});

test('stages stop in the reverse order of their start, and no process is left', async () => {
  await watch(
    [createPart('server', RUNS)],
    [createPart('worker', RUNS)],
    [createPart('api', RUNS)],
  ).start();
  expect(changes.map((change) => change.part)).toEqual(['server', 'worker', 'api']);
  await supervisor?.stop();
  expect(folder.read('order')).toBe('api worker server ');
  expect(changes.flatMap(({ pid }) => pid ?? []).some(isAlive)).toBe(false);
});

test('when a first start fails, the parts that are up are stopped', async () => {
  const broken: Part = { name: 'broken', start: () => Promise.reject(new Error('no such file')) };
  await expect(watch([createPart('a', RUNS)], [broken]).start()).rejects.toThrow('no such file');
  expect(listPids('a').map(isAlive)).toEqual([false]);
});

test('a stop ends a start in progress, and a server that never comes up', async () => {
  const pids: number[] = [];
  const start = async (signal: AbortSignal) => {
    const child = await createPart('silent', RUNS).start(signal);
    pids.push(child.pid);
    const up = waitUntilUp(
      child,
      folder.at('silent.log'),
      60_000,
      () => new Promise(() => {}),
      signal,
    );
    await up.catch(async (error) => {
      await child.stop();
      throw error;
    });
    return child;
  };
  const both = [createPart('a', RUNS), { name: 'silent', start }];
  const started = watch(both, [createPart('b', RUNS)]).start();
  const refused = expect(started).rejects.toThrow('aborted');
  await until(() => pids.length === 1 && listPids('a').length === 1);
  await supervisor?.stop();
  await refused;
  expect([...pids, ...listPids('a')].map(isAlive)).toEqual([false, false]);
  expect(listPids('b')).toEqual([]);
});

test('a part that comes up during the stop is stopped, too', async () => {
  const { opened, release } = gate();
  const late = createPart('late', RUNS);
  const start = (signal: AbortSignal) => opened.then(() => late.start(signal));
  const started = watch([{ name: 'late', start }], [createPart('b', RUNS)]).start();
  const refused = expect(started).rejects.toThrow('aborted');
  const stopped = supervisor?.stop();
  release();
  await Promise.all([stopped, refused]);
  expect(listPids('late').map(isAlive)).toEqual([false]);
  expect(listPids('b')).toEqual([]);
});

test('hurrying kills a part that ignores its stop', async () => {
  const listens = folder.at('listens');
  await watch([createPart('stubborn', STUBBORN, listens)]).start();
  await until(() => existsSync(listens));
  const stopped = supervisor?.stop();
  await until(() => existsSync(folder.at('order')));
  supervisor?.hurry();
  await stopped;
  expect(listPids('stubborn').map(isAlive)).toEqual([false]);
});
