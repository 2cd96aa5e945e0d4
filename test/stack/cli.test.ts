import { spawnSync } from 'node:child_process';
import { cpSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { useTempFolder } from '../unit/temp-folder';

const MAIN = 'dist/src/cli/main.js';

const root = useTempFolder();
beforeEach(() => {
  for (const file of ['cli.js', 'sources.js']) {
    cpSync(join('dist/stack', file), root.at('dist/stack', file));
  }
  root.write('src/cli/main.ts', '');
  root.write(MAIN, "console.log('old code');");
});

function run(build: string) {
  root.write('package.json', JSON.stringify({ scripts: { build } }));
  return spawnSync(process.execPath, [root.at('dist/stack/cli.js')], { encoding: 'utf8' });
}

function changeSource(): void {
  const later = new Date(Date.now() + 1_000);
  utimesSync(root.at('src/cli/main.ts'), later, later);
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
