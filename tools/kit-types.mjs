/**
 * Writes the type declarations of the connector kit next to its code, with those that they need, the
 * sources of the example, which `connector new` copies, and the JSON Schema of the contract over HTTP.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

const EMITTED = 'dist/kit-types';
const ENTRY = 'connectors/kit/index.d.ts';
const SOURCE = 'dist/connectors/example/source';

const { stdout } = spawnSync('npx', ['tsc', '-p', 'tsconfig.kit.json'], { encoding: 'utf8' });

const copied = new Set();
copy(ENTRY);
const faults = stdout.split('\n').filter((line) => / error TS/.test(line) && !isElsewhere(line));
if (faults.length > 0) {
  console.error(faults.join('\n'));
  process.exit(1);
}
rmSync(EMITTED, { recursive: true });

mkdirSync(SOURCE, { recursive: true });
for (const name of ['example', 'fake-bank', 'main', 'test']) {
  copyFileSync(`connectors/example/${name}.ts`, join(SOURCE, `${name}.ts`));
}
copyFileSync('connectors/contract/schema/v1.json', 'dist/connectors/contract/v1.json');

/** Whether an error is about a type without a name, in a file whose declarations nobody gets. */
function isElsewhere(line) {
  const [, path = ''] = /^(.+)\.tsx?\(/.exec(line) ?? [];
  return line.includes('error TS4058') && !copied.has(`${path}.d.ts`);
}

/** Copies a declaration, and every file that it imports. */
function copy(path) {
  if (copied.has(path)) return;
  copied.add(path);
  const text = readFileSync(join(EMITTED, path), 'utf8');
  mkdirSync(dirname(join('dist', path)), { recursive: true });
  copyFileSync(join(EMITTED, path), join('dist', path));
  for (const [, target] of text.matchAll(/(?:from|import\() ?['"](\.[^'"]+)['"]/g)) {
    const base = join(dirname(path), target);
    const found = [`${base}.d.ts`, join(base, 'index.d.ts')];
    copy(found.find((each) => existsSync(join(EMITTED, each))) ?? found[0]);
  }
}
