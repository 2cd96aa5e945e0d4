// Adds saved histories that are new to the manifest, which is only ever added to.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '../test/replay');
const manifest = join(folder, 'manifest.txt');

const sealed = new Map(
  (existsSync(manifest) ? readFileSync(manifest, 'utf8') : '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('  ').reverse()),
);
const files = readdirSync(join(folder, 'histories')).sort();
const hashOf = (file) =>
  createHash('sha256')
    .update(readFileSync(join(folder, 'histories', file)))
    .digest('hex');

const broken = [...sealed].filter(([file, hash]) => !files.includes(file) || hashOf(file) !== hash);
if (broken.length > 0) {
  for (const [file] of broken)
    console.error(`${file} is not as it was sealed; take it back from git.`);
  process.exit(1);
}
const fresh = files.filter((file) => !sealed.has(file));
appendFileSync(manifest, fresh.map((file) => `${hashOf(file)}  ${file}\n`).join(''));
console.log(fresh.length === 0 ? 'Nothing is new.' : `Sealed ${fresh.join(', ')}.`);
