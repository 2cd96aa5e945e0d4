import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { staleSource } from './sources';

const ROOT = join(__dirname, '../..');

const stale = staleSource(ROOT);
if (stale !== undefined) {
  console.error(`${stale} is newer than the build: building`);
  // The build's output goes to stderr, since stdout is the command's.
  const { status } = spawnSync('npm', ['run', '-s', 'build'], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) {
    console.error('The build failed. The last one runs as: node dist/src/cli/main.js');
    process.exit(1);
  }
}
require('../src/cli/main');
