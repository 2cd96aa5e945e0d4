import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { tryLock } from '../../src/base/file-lock';
import { connectMongo } from '../../src/base/mongo';
import { isAlive, readCommandLine } from '../../src/base/process-table';
import { FORMAT } from '../../src/domain/format';
import { PART_NAMES, readState, type StackState, stateFile } from '../../stack/data-dir';
import { freePort, isPortFree, LOOPBACK } from '../../stack/ports';
import { runCommand } from '../../stack/provision/command';
import { staleSource } from '../../stack/sources';
import type { Progress } from '../../stack/terminal';
import { listVariables } from '../../stack/usage';
import { watchSources } from '../../stack/watch';
import { fetchPage, visitor } from '../support/dashboard';
import { eventually } from '../support/eventually';
import { spawnProgram } from '../support/programs';
import { mongodbUri, temporalAddress } from '../support/servers';
import { useTempFolder } from '../unit/temp-folder';

const MAIN = resolve('dist/stack/main.js');

type Launcher = ReturnType<typeof spawnProgram>;
type Place = Awaited<ReturnType<typeof findPlace>>;

const folder = mkdtempSync(join(tmpdir(), 'stack-launcher-'));
let started: Launcher[] = [];

afterEach(async () => {
  for (const launcher of started) launcher.process.kill('SIGTERM');
  await Promise.all(started.map((launcher) => launcher.exited));
  started = [];
});
afterAll(() => rmSync(folder, { recursive: true }));

async function findPlace() {
  const [PORT, SANDBOX_BANK_PORT] = [`${await freePort()}`, `${await freePort()}`];
  const ports = { PORT, SANDBOX_BANK_PORT, TEMPORAL_UI_PORT: `${await freePort()}` };
  return { dataDir: mkdtempSync(join(folder, 'data-')), ports };
}

function start({ dataDir, ports }: Place, env: NodeJS.ProcessEnv = {}, ...args: string[]) {
  const { PATH, HOME } = process.env;
  // As under npm: it stops by itself when its parent, this test, is killed.
  const own = { PATH, HOME, DATA_DIR: dataDir, npm_lifecycle_event: 'start', ...ports };
  const launcher = spawnProgram([MAIN, ...args], { env: { ...own, ...env } });
  started.push(launcher);
  return launcher;
}

/** Processes start in this time, also on a busy machine. */
const START_MS_MAX = 200_000;

async function ready(launcher: Launcher, { dataDir, ports }: Place): Promise<StackState> {
  const hasAnswered = async () =>
    /^ready /m.test(launcher.said()) || launcher.process.exitCode !== null;
  await eventually('the launcher to say ready', hasAnswered, START_MS_MAX);
  expect(launcher.said()).toMatch(`ready http://localhost:${ports.PORT}\n`);
  return await eventually('stack.json', async () => readState(dataDir));
}

async function logged({ dataDir }: Place, part: string): Promise<string> {
  const path = join(dataDir, 'logs', `${part}.log`);
  const findTrace = async () => {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    return text.includes('at main (') && text;
  };
  return await eventually(`a stack trace of ${part}`, findTrace, START_MS_MAX);
}

const listPids = (state: StackState): number[] =>
  PART_NAMES.flatMap((part) => (state[part] === undefined ? [] : Number(state[part].pid)));

type Fault = { reason: string; env?: NodeJS.ProcessEnv; end?: () => unknown };

const FAULTS: Record<string, (place: Place) => Promise<Fault>> = {
  'a second start on the same data': async ({ dataDir }) => {
    const lock = tryLock(join(dataDir, 'launcher.lock'));
    const reason = `Another npm start (pid ${process.pid}) runs on DATA_DIR ${dataDir}.`;
    return { reason, end: () => lock.release() };
  },
  'a port in use': async ({ ports: { PORT } }) => {
    const other = createServer().listen(Number(PORT), LOOPBACK);
    await once(other, 'listening');
    return { reason: `Port ${PORT} (PORT) is taken by another program`, end: () => other.close() };
  },
  'data of another format': async ({ dataDir }) => {
    writeFileSync(join(dataDir, 'ports.json'), '{}');
    return { reason: `DATA_DIR ${dataDir} has data without a format number` };
  },
  'a database of another format': async () => {
    const mongo = await connectMongo(mongodbUri(), 'launcher');
    const MONGODB_DB = `other_format_${process.pid}`;
    const db = mongo.db(MONGODB_DB);
    const epochs = db.collection<{ _id: string; format: number }>('service_epoch');
    await epochs.insertOne({ _id: 'epoch', format: FORMAT + 1 });
    const reason = `The database ${MONGODB_DB} has format ${FORMAT + 1}`;
    const end = () => db.dropDatabase().finally(() => mongo.close());
    return { reason, env: { ...SERVERS(), MONGODB_DB }, end };
  },
  'a live bank on the servers that it starts itself': async () => ({
    reason: 'Set TEMPORAL_ADDRESS, MONGODB_URI, an https PUBLIC_URL',
    env: { LIVE_CONNECTORS: 'acme=visa' },
  }),
  'a MongoDB that does not answer': async () => {
    const MONGODB_URI = `mongodb://127.0.0.1:${await freePort()}/?serverSelectionTimeoutMS=300`;
    return { reason: 'No MongoDB at MONGODB_URI', env: { ...SERVERS(), MONGODB_URI } };
  },
};

const SERVERS = () => ({ MONGODB_URI: mongodbUri(), TEMPORAL_ADDRESS: temporalAddress() });

test('the launcher refuses what it cannot start, with the reason', async () => {
  const refuse = async (cause: (place: Place) => Promise<Fault>) => {
    const place = await findPlace();
    const { reason, env, end } = await cause(place);
    const launcher = start(place, env);
    const code = await launcher.exited;
    await end?.();
    expect({ code, said: launcher.said() }).toEqual({
      ...{ code: 1, said: expect.stringContaining(reason) },
    });
  };
  await Promise.all(Object.values(FAULTS).map(refuse));
});

test('--help lists every variable', async () => {
  const launcher = start(await findPlace(), {}, '--help');
  expect(await launcher.exited).toBe(0);
  for (const { name, isLauncher } of listVariables()) {
    if (!isLauncher) expect(launcher.said()).toContain(`  ${name} `);
  }
});

test('a stack trace in a log names lines of the sources', async () => {
  const place = await findPlace();
  const launcher = start(place, {
    ...{ ...SERVERS(), MONGODB_DB: 'traces' },
    // Its worker would take the work of other tests.
    TASK_QUEUE_PREFIX: 'traces',
    // The launcher does not read it; api and worker end with a stack trace.
    RATE_LIMIT_PER_SECOND: 'none',
  });
  const [worker, api] = await Promise.all([logged(place, 'worker'), logged(place, 'api')]);
  expect(worker).toContain(`at main (${resolve('worker/main.ts')}:`);
  expect(api).toContain(`at main (${resolve('src/main.ts')}:`);
  launcher.process.kill('SIGTERM');
  expect(await launcher.exited).toBe(0);
});

test('the stack starts, survives a killed launcher and stops completely', async () => {
  const place = await findPlace();
  const { dataDir } = place;
  const debugPort = await freePort();
  const first = start(place, {}, '--inspect', `worker:${debugPort}`);
  const state = await ready(first, place);
  expect(listPids(state).every(isAlive)).toBe(true);
  const debuggers = await fetch(`http://${LOOPBACK}:${debugPort}/json/list`);
  expect(await debuggers.json()).toMatchObject([{ title: resolve('dist/worker/main.js') }]);
  for (const part of ['api', 'sandbox_bank'] as const) {
    expect(readCommandLine(Number(state[part].pid))).not.toContain('--inspect');
  }
  const isReady = async () => (await fetch(`${state.api.url}/readyz`)).ok;
  await eventually('readiness', isReady);
  expect(first.said()).toMatch(/curl .*sk_sandbox_/);
  const [, email = ''] = /e-mail +(\S+)/.exec(first.said()) ?? [];
  const [, password = ''] = /password +(\S+)/.exec(first.said()) ?? [];
  const mongo = await connectMongo(state.mongodb.uri, 'test');
  const db = mongo.db('payments');
  await db.command({ profile: 2 });
  const form = { email, password };
  const entered = await fetchPage(state.api.url, 'POST', '/dashboard/sign-in', { form });
  const browser = visitor(state.api.url, entered.cookie ?? '');
  expect((await browser.get('/dashboard/sandbox/overview')).status).toBe(200);
  await db.command({ profile: 0 });
  // Connections of its own: visitors take none from the API.
  const sessions = { ns: 'payments.dashboard_sessions' };
  expect(await db.collection('system.profile').distinct('appName', sessions)).toEqual([
    'dashboard',
  ]);
  await mongo.close();

  first.process.kill('SIGKILL');
  await first.exited;
  const second = start(place);
  const again = await ready(second, place);
  expect(second.said()).toMatch(/Ended what the last start left running: .*temporal, mongodb/);
  expect(listPids(state).some(isAlive)).toBe(false);
  expect(again.mongodb.uri).toBe(state.mongodb.uri);
  expect(again.temporal.address).toBe(state.temporal.address);
  expect(second.said()).toMatch(/curl .*sk_sandbox_/);

  second.process.kill('SIGTERM');
  expect(await second.exited).toBe(0);
  expect(listPids(again).some(isAlive)).toBe(false);
  expect(existsSync(stateFile(dataDir))).toBe(false);
  expect(existsSync(join(dataDir, 'launcher.lock'))).toBe(false);
  expect(readFileSync(join(dataDir, 'demo-account.json'), 'utf8')).not.toContain('sk_live_');
});

test('a stop while the servers start begins no other part and leaves nothing running', async () => {
  const place = await findPlace();
  const { dataDir } = place;
  const log = (part: string) => join(dataDir, 'logs', `${part}.log`);
  const launcher = start(place);
  await eventually('the first server', async () => existsSync(log('mongodb')));
  launcher.process.kill('SIGTERM');
  expect(await launcher.exited).toBe(0);
  expect(existsSync(log('worker'))).toBe(false);
  const ports: object = JSON.parse(readFileSync(join(dataDir, 'ports.json'), 'utf8'));
  expect(await Promise.all(Object.values(ports).map(isPortFree))).not.toContain(false);
});

describe('the command line', () => {
  const CLI = 'dist/src/cli/main.js';

  const root = useTempFolder();
  beforeEach(() => {
    for (const file of ['cli.js', 'sources.js']) {
      cpSync(join('dist/stack', file), root.at('dist/stack', file));
    }
    root.write('src/cli/main.ts', '');
    root.write(CLI, "console.log('old code');");
  });

  const BUILD = `node -e "fs.writeFileSync('${CLI}', 'console.log(\\'new code\\')')"`;

  function run(build: string) {
    root.write('package.json', JSON.stringify({ scripts: { build } }));
    return spawnSync(process.execPath, [root.at('dist/stack/cli.js')], { encoding: 'utf8' });
  }

  function changeSource(): void {
    const later = new Date(Date.now() + 1_000);
    utimesSync(root.at('src/cli/main.ts'), later, later);
  }

  test('runs a current build without a build and without output', () => {
    expect(run(BUILD)).toMatchObject({ status: 0, stdout: 'old code\n', stderr: '' });
  });

  test('builds first, and says so on stderr, when a source is newer than the build', () => {
    changeSource();
    expect(run(`echo compiled && ${BUILD}`)).toMatchObject({
      status: 0,
      stdout: 'new code\n',
      stderr: 'src/cli/main.ts is newer than the build: building\ncompiled\n',
    });
  });

  test('runs no old code when the build has errors', () => {
    changeSource();
    const { status, stdout, stderr } = run('exit 2');
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain('The build failed.');
  });
});

describe('the watch of sources', () => {
  /** A checkout in small: each process, what two of them share, and the workflows of the worker. */
  const SOURCES = {
    'src/shared.ts': 'export const shared = 1;',
    'src/main.ts': "import { shared } from './shared';\nexport const api = shared;",
    'connectors/sandbox/main.ts': "import { shared } from '../../src/shared';\nvoid shared;",
    'workflows/index.ts': 'export const lifecycle = 1;',
    'worker/main.ts': "import './bundle';",
    'worker/bundle.ts': `import { copyFileSync } from 'node:fs';
    copyFileSync(require.resolve('../workflows'), 'dist/bundle');`,
    'activities/index.ts': 'export {};',
    'stack/main.ts': 'export {};',
    'tsconfig.build.json': JSON.stringify({
      compilerOptions: {
        ...{ module: 'node20', target: 'es2022', rootDir: '.', outDir: 'dist', types: ['node'] },
        skipLibCheck: true,
      },
      exclude: ['dist', 'node_modules'],
    }),
  };

  const root = mkdtempSync(join(tmpdir(), 'stack-watch-'));
  const said: string[] = [];
  const stop = new AbortController();
  let restarted: string[] = [];
  let watching: Promise<void>;

  beforeAll(async () => {
    symlinkSync(resolve('node_modules'), join(root, 'node_modules'));
    for (const [name, text] of Object.entries(SOURCES)) write(name, text);
    const tsc = resolve('node_modules/typescript/bin/tsc');
    const options = { cwd: root, timeoutMs: 180_000 };
    await runCommand(process.execPath, [tsc, '-p', 'tsconfig.build.json'], options);
    const progress: Progress = {
      line: (text) => void said.push(text),
      during: (_name, work) => work({ say: () => {} }),
    };
    const restart = async (part: string) => void restarted.push(part);
    const parts = ['api', 'worker', 'sandbox_bank'] as const;
    watching = watchSources({ root, parts, restart, progress, signal: stop.signal });
  });
  beforeEach(() => {
    restarted = [];
  });
  afterAll(async () => {
    stop.abort();
    await watching;
    rmSync(root, { recursive: true });
  });

  function write(name: string, text: string): void {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), `${text}\n`);
  }

  async function afterChange(name: string, text: string): Promise<string> {
    const lines = said.length;
    write(name, text);
    await eventually('a build', async () => said.length > lines, START_MS_MAX);
    return said.slice(lines).join('\n');
  }

  test.each([
    ['src/shared.ts', 'export const shared = 2;', ['api', 'sandbox_bank']],
    ['src/main.ts', 'export const api = 2;', ['api']],
    ['src/main.ts', 'export const api = 2;\nexport type Api = number;', []],
    ['workflows/index.ts', 'export const lifecycle = 2;', ['worker']],
  ])('a change of %s to %j restarts the parts that load it: %j', async (name, text, parts) => {
    const listed = parts.length === 0 ? 'nothing to restart' : `restarting ${parts.join(', ')}`;
    expect(await afterChange(name, text)).toBe(`Built: ${listed}`);
    expect(restarted.toSorted()).toEqual(parts);
    expect(staleSource(root)).toBeUndefined();
    const bundle = join(root, 'dist/bundle');
    const bundled = existsSync(bundle) ? readFileSync(bundle, 'utf8') : '';
    expect(bundled.includes('exports.lifecycle = 2')).toBe(parts.includes('worker'));
  });

  test('a build with errors restarts nothing and names the errors; the next build restarts', async () => {
    const faults = await afterChange('src/main.ts', "export const api: number = 'one';");
    expect(faults).toMatch(/^Nothing was restarted: .*src\/main\.ts\(1,14\): error TS2322/s);
    expect(restarted).toEqual([]);
    await afterChange('src/main.ts', 'export const api = 3;');
    expect(restarted).toEqual(['api']);
  });
});
