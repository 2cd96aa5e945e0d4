import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runCommand } from '../../stack/provision/command';
import { staleSource } from '../../stack/sources';
import type { Progress } from '../../stack/terminal';
import { watchSources } from '../../stack/watch';

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
  while (said.length === lines) await sleep(20);
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
