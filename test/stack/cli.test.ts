import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const MAIN = 'dist/src/cli/main.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'stack-cli-'));
  for (const file of ['cli.js', 'sources.js']) {
    cpSync(join('dist/stack', file), join(root, 'dist/stack', file));
  }
  write('src/cli/main.ts', '');
  write(MAIN, "console.log('old code');");
});
afterEach(() => rmSync(root, { recursive: true }));

function write(name: string, text: string): void {
  mkdirSync(dirname(join(root, name)), { recursive: true });
  writeFileSync(join(root, name), text);
}

function run(build: string) {
  write('package.json', JSON.stringify({ scripts: { build } }));
  return spawnSync(process.execPath, [join(root, 'dist/stack/cli.js')], { encoding: 'utf8' });
}

function changeSource(): void {
  const later = new Date(Date.now() + 1_000);
  utimesSync(join(root, 'src/cli/main.ts'), later, later);
}

const BUILD = `node -e "fs.writeFileSync('${MAIN}', 'console.log(\\'new code\\')')"`;

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
