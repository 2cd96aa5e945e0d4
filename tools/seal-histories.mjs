// Adds new histories to the manifest, which only grows.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '../test/replay');
const manifest = join(folder, 'manifest.txt');

const manifestHashes = new Map(
  (existsSync(manifest) ? readFileSync(manifest, 'utf8') : '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('  ').reverse()),
);
const files = readdirSync(join(folder, 'histories')).sort();
const hashHistory = (file) =>
  createHash('sha256')
    .update(readFileSync(join(folder, 'histories', file)))
    .digest('hex');

const broken = [...manifestHashes].filter(
  ([file, hash]) => !files.includes(file) || hashHistory(file) !== hash,
);
if (broken.length > 0) {
  for (const [file] of broken)
    console.error(`${file} differs from its hash in the manifest; restore it from git.`);
  process.exit(1);
}
const fresh = files.filter((file) => !manifestHashes.has(file));
appendFileSync(manifest, fresh.map((file) => `${hashHistory(file)}  ${file}\n`).join(''));
console.log(fresh.length === 0 ? 'Nothing is new.' : `Added ${fresh.join(', ')}.`);
