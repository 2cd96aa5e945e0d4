import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { isAlive } from '../../src/base/process-table';
import { SAMPLE_PAYMENT } from '../../src/domain/wire/samples';
import { PART_NAMES, readState } from '../../stack/data-dir';
import { freePort } from '../../stack/ports';
import { eventually } from '../support/eventually';
import { call } from '../support/http';
import { NOT_DONE } from '../support/not-done';
import { spawnProgram } from '../support/programs';
import { mongodbUri, temporalAddress } from '../support/servers';

const COMMAND = 'dist/stack/bin.js';
const TARBALL = 'durable-payments-2.0.0.tgz';
const MEGABYTE = 1_000_000;

/** An empty directory outside the checkout, into which the package is installed. */
let shop: string;
let files: string[];

beforeAll(() => {
  shop = mkdtempSync(join(tmpdir(), 'package-'));
  files = pack();
  install();
});
afterAll(() => rmSync(shop, { recursive: true }));

function pack(): string[] {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', shop];
  const { stdout } = spawnSync('npm', args, { encoding: 'utf8' });
  const Packed = z.array(z.object({ files: z.array(z.object({ path: z.string() })) }));
  return Packed.parse(JSON.parse(stdout)).flatMap((each) => each.files.map(({ path }) => path));
}

const Lock = z.looseObject({ packages: z.record(z.string(), z.looseObject({})) });

/** Installs the package next to the packages that it needs, as `npm install` does without a network. */
function install(): void {
  const { packages } = Lock.parse(JSON.parse(readFileSync('package-lock.json', 'utf8')));
  for (const [path, { dev, devOptional }] of Object.entries(packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1];
    if (name === undefined || dev === true || devOptional === true) continue;
    if (!existsSync(path)) continue;
    mkdirSync(dirname(join(shop, path)), { recursive: true });
    symlinkSync(resolve(path), join(shop, path));
  }
  mkdirSync(join(shop, 'node_modules/durable-payments'));
  const into = ['-C', 'node_modules/durable-payments', '--strip-components=1'];
  const { status } = spawnSync('tar', ['-xzf', TARBALL, ...into], { cwd: shop });
  expect(status).toBe(0);
}

const program = () => join(shop, 'node_modules/durable-payments', COMMAND);

function run(...args: string[]) {
  const options = { cwd: shop, encoding: 'utf8', env: environment() } as const;
  return spawnSync(process.execPath, [program(), ...args], options);
}

function print(...args: string[]): string {
  const { status, stdout, stderr } = run(...args);
  return `${status}: ${stderr}${stdout}`;
}

function environment(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: process.env['HOME'], ...more };
}

test('the tarball contains what runs and nothing else', () => {
  const folders = new Set(files.map((path) => path.split('/').slice(0, 2).join('/')));
  expect([...folders].sort()).toEqual([
    'LICENSE',
    'README.md',
    'dist/activities',
    'dist/connectors',
    'dist/site',
    'dist/src',
    'dist/stack',
    'dist/worker',
    'dist/workflow-bundles',
    'dist/workflows',
    'package.json',
  ]);
  expect(files).toContain('dist/src/statements/xsd/pain.001.001.09.xsd');
  expect(files).toContain('dist/connectors/contract/v1.json');
  const sources = files.filter((path) => /(?<!\.d)\.tsx?$|\.test\.|\.env|keys\.json/.test(path));
  // `connector new` copies them.
  const example = ['example', 'fake-bank', 'main', 'test'];
  expect(sources).toEqual(example.map((name) => `dist/connectors/example/source/${name}.ts`));
  const declared = files.filter((path) => path.endsWith('.d.ts'));
  expect(declared).toContain('dist/connectors/kit/index.d.ts');
  expect(declared.filter((path) => path.startsWith('dist/src/store'))).toEqual([]);
  expect(statSync(join(shop, TARBALL)).size).toBeLessThan(8 * MEGABYTE);
  expect(existsSync(join(shop, 'node_modules/typescript'))).toBe(false);
});

test('the packaged command is named in package.json and has a help', () => {
  const manifest = readFileSync(join(shop, 'node_modules/durable-payments/package.json'), 'utf8');
  expect(JSON.parse(manifest)).toMatchObject({ bin: { 'durable-payments': COMMAND } });
  expect(print('--version')).toBe('0: 2.0.0\n');
  expect(print('--help')).toMatch(/^0: .*durable-payments start/s);
  expect(print('strat')).toMatch(/^1: There is no command strat\.\n\ndurable-payments: /);
  expect(print('start', '--watch')).toMatch(/^1: .*only a checkout/s);
  expect(print('cli', 'account', '--help')).toContain('npx durable-payments cli account create');
});

test('a new connector on the packaged kit type-checks and passes its own test', () => {
  const made = print('cli', 'connector', 'new', 'acme');
  expect(made).toMatch(/^0: .*acme has acme\.ts, main\.ts, fake-bank\.ts, test\.ts\./s);
  const compilerOptions = {
    ...{ module: 'node20', target: 'es2022', lib: ['es2024'], types: ['node'], strict: true },
    ...{ noUncheckedIndexedAccess: true, noUnusedLocals: true, rootDir: '.', outDir: 'built' },
  };
  const config = JSON.stringify({ compilerOptions, include: ['acme'] });
  writeFileSync(join(shop, 'tsconfig.json'), config);
  const compiler = resolve('node_modules/typescript/bin/tsc');
  const node = (...args: string[]) =>
    spawnSync(process.execPath, args, { cwd: shop, encoding: 'utf8', env: environment() });
  expect(node(compiler, '-p', '.')).toMatchObject({ status: 0, stdout: '' });
  expect(node('--test', 'built/acme/test.js')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('# pass 3'),
  });
});

test('the package starts in the current directory, takes a payment and stops completely', async () => {
  const name = `package_${process.pid}`;
  const servers = { MONGODB_URI: mongodbUri(), TEMPORAL_ADDRESS: temporalAddress() };
  const ports = { PORT: `${await freePort()}`, SANDBOX_BANK_PORT: `${await freePort()}` };
  const names = { MONGODB_DB: name, TASK_QUEUE_PREFIX: name };
  const env = environment({ ...servers, ...ports, ...names });
  const stack = spawnProgram([program(), 'start'], { cwd: shop, env });
  try {
    const isReady = async () => {
      if (stack.process.exitCode !== null) throw new Error(stack.said());
      return /^ready /m.test(stack.said());
    };
    await eventually('the package to start', isReady, 200_000);
    expect(stack.said()).toContain('npx durable-payments cli webhook set ');
    const [, account = ''] = /account +(\S+)/.exec(stack.said()) ?? [];
    const [, key = ''] = /sandbox key +(\S+)/.exec(stack.said()) ?? [];
    const state = readState(join(shop, '.data'));
    const request = { key, body: SAMPLE_PAYMENT, idempotencyKey: 'order-1001' };
    const answer = await call(`${state?.api.url}`, 'POST', '/v1/payments', request);
    expect(answer.status).toBe(201);
    const shown = await eventually('an answer of the command line', async () => {
      const outcome = run('cli', 'balance', 'show', account, '--env', 'sandbox');
      return !NOT_DONE.test(outcome.stderr) && outcome;
    });
    expect(shown).toMatchObject({ status: 0, stdout: expect.stringContaining('marketing') });
    stack.process.kill('SIGTERM');
    await stack.exited;
    const pids = PART_NAMES.map((part) => state?.[part]?.pid ?? null).filter((pid) => pid !== null);
    expect(pids).toHaveLength(3);
    await eventually('the end of the parts', async () => !pids.some(isAlive));
  } finally {
    stack.process.kill('SIGTERM');
  }
});
