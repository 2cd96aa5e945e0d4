import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../../../src/base/process-table';
import { startChild, waitUntilUp } from '../../../stack/child-process';
import { type Part, type PartChange, type Supervisor, supervise } from '../../../stack/supervisor';
import { gate } from '../../support/gate';

const QUICK = { backoffMsMin: 20, backoffMsMax: 80, steadyMs: 100_000 };
const RUNS = 'setInterval(() => {}, 1000)';
const ENDS = 'process.exit(3)';
const STUBBORN = `process.on('SIGTERM', () => {}); require('fs').writeFileSync(process.argv[1], '');
  ${RUNS}`;

let folder: string;
let changes: PartChange[];
let supervisor: Supervisor | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stack-supervisor-'));
  changes = [];
});
afterEach(async () => {
  supervisor?.hurry();
  await supervisor?.stop();
  rmSync(folder, { recursive: true });
});

function part(name: string, script: string, ...args: string[]): Part {
  return {
    name,
    start: async () => {
      const child = await startChild({
        name,
        command: process.execPath,
        args: ['-e', script, ...args],
        logFile: join(folder, `${name}.log`),
        graceMs: 60_000,
      });
      const stop = async (): Promise<void> => {
        appendFileSync(join(folder, 'order'), `${name} `);
        await child.stop();
      };
      return { ...child, stop };
    },
  };
}

function watching(...stages: Part[][]): Supervisor {
  supervisor = supervise(stages, (change) => void changes.push(change), QUICK);
  return supervisor;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

const pidsOf = (name: string): number[] =>
  changes.filter((change) => change.part === name).flatMap(({ pid }) => pid ?? []);

test('a part that is killed is started again under a new pid, the others stay', async () => {
  await watching([part('a', RUNS), part('b', RUNS)]).start();
  const [killed = 0] = pidsOf('a');
  process.kill(killed, 'SIGKILL');
  await until(() => pidsOf('a').length === 2);
  expect(changes.filter((change) => change.what === 'down')).toEqual([
    { part: 'a', pid: null, what: 'down', reason: 'was ended by SIGKILL', retryInMs: 20 },
  ]);
  expect(pidsOf('a').map(isAlive)).toEqual([false, true]);
  expect(pidsOf('b')).toHaveLength(1);
});

test('a part that keeps dying is started after waits that double up to the longest', async () => {
  await watching([part('a', ENDS)]).start();
  const waits = () => changes.flatMap((change) => change.retryInMs ?? []);
  await until(() => waits().length >= 5);
  expect(waits().slice(0, 5)).toEqual([20, 40, 80, 80, 80]);
  expect(changes[1]).toMatchObject({ what: 'down', reason: 'ended with exit code 3' });
});

test('a restart ends a part in the ordinary way and starts it at once', async () => {
  await watching([part('a', RUNS), part('b', RUNS)]).start();
  await supervisor?.restart('a');
  await until(() => pidsOf('a').length === 2);
  expect(changes.slice(2).map(({ part, what }) => [part, what])).toEqual([
    ['a', 'restarting'],
    ['a', 'up'],
  ]);
  expect(pidsOf('a').map(isAlive)).toEqual([false, true]);
  expect(readFileSync(join(folder, 'order'), 'utf8')).toBe('a ');
});

test('a restart cuts short the wait of a part that keeps dying', async () => {
  const slow = { ...QUICK, backoffMsMin: 60_000, backoffMsMax: 60_000 };
  supervisor = supervise([[part('a', ENDS)]], (change) => void changes.push(change), slow);
  await supervisor.start();
  await until(() => changes.some(({ what }) => what === 'down'));
  await supervisor.restart('a');
  await until(() => pidsOf('a').length === 2);
});

test('a part that could not be started again is tried on', async () => {
  let starts = 0;
  const shy = part('shy', RUNS);
  const start = (signal: AbortSignal) => {
    starts += 1;
    return starts === 2 ? Promise.reject(new Error('port in use')) : shy.start(signal);
  };
  await watching([{ ...shy, start }]).start();
  process.kill(pidsOf('shy')[0] ?? 0, 'SIGKILL');
  await until(() => pidsOf('shy').length === 2);
  expect(changes.map(({ what }) => what)).toEqual(['up', 'down', 'failed to start', 'up']);
});

test('stages stop in the reverse order of their start and nothing is left', async () => {
  await watching([part('server', RUNS)], [part('worker', RUNS)], [part('api', RUNS)]).start();
  expect(changes.map((change) => change.part)).toEqual(['server', 'worker', 'api']);
  await supervisor?.stop();
  expect(readFileSync(join(folder, 'order'), 'utf8')).toBe('api worker server ');
  expect(changes.flatMap(({ pid }) => pid ?? []).some(isAlive)).toBe(false);
});

test('when a first start fails, the parts that had come up are ended', async () => {
  const broken: Part = { name: 'broken', start: () => Promise.reject(new Error('no such file')) };
  await expect(watching([part('a', RUNS)], [broken]).start()).rejects.toThrow('no such file');
  expect(pidsOf('a').map(isAlive)).toEqual([false]);
});

test('a stop ends a start in progress, and a server that does not come up', async () => {
  const pids: number[] = [];
  const start = async (signal: AbortSignal) => {
    const logFile = join(folder, 'silent.log');
    const options = { command: process.execPath, args: ['-e', RUNS], logFile, graceMs: 60_000 };
    const child = await startChild({ name: 'silent', ...options });
    pids.push(child.pid);
    try {
      await waitUntilUp(child, logFile, 60_000, () => new Promise(() => {}), signal);
    } catch (error) {
      await child.stop();
      throw error;
    }
    return child;
  };
  const started = watching([part('a', RUNS), { name: 'silent', start }], [part('b', RUNS)]).start();
  const refused = expect(started).rejects.toThrow('aborted');
  await until(() => pids.length === 1 && pidsOf('a').length === 1);
  await supervisor?.stop();
  await refused;
  expect([...pids, ...pidsOf('a')].map(isAlive)).toEqual([false, false]);
  expect(pidsOf('b')).toEqual([]);
});

test('a part that comes up during the stop is ended, too', async () => {
  const { opened, release } = gate();
  const late = part('late', RUNS);
  const start = (signal: AbortSignal) => opened.then(() => late.start(signal));
  const started = watching([{ name: 'late', start }], [part('b', RUNS)]).start();
  const refused = expect(started).rejects.toThrow('aborted');
  const stopped = supervisor?.stop();
  release();
  await Promise.all([stopped, refused]);
  expect(pidsOf('late').map(isAlive)).toEqual([false]);
  expect(pidsOf('b')).toEqual([]);
});

test('hurrying cuts short the stop of a part that does not want to end', async () => {
  const listens = join(folder, 'listens');
  await watching([part('stubborn', STUBBORN, listens)]).start();
  await until(() => existsSync(listens));
  const stopped = supervisor?.stop();
  await until(() => existsSync(join(folder, 'order')));
  supervisor?.hurry();
  await stopped;
  expect(pidsOf('stubborn').map(isAlive)).toEqual([false]);
});
