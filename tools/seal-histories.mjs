// Adds new histories to the manifest, and a pin of it for this build; both only grow.
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'test/replay');
const manifest = join(folder, 'manifest.txt');
const pinsFile = join(folder, 'pins.txt');

const hash = (content) => createHash('sha256').update(content).digest('hex');
const readLines = (file) =>
  (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').filter((line) => line !== '');
const hashLines = (lines) => hash(lines.map((line) => `${line}\n`).join(''));
const fail = (faults) => {
  for (const fault of faults) console.error(fault);
  process.exit(1);
};

const manifestHashes = new Map(readLines(manifest).map((line) => line.split('  ').reverse()));
const files = readdirSync(join(folder, 'histories')).sort();
const hashHistory = (file) => hash(readFileSync(join(folder, 'histories', file)));

const broken = [...manifestHashes].filter(
  ([file, sha256]) => !files.includes(file) || hashHistory(file) !== sha256,
);
if (broken.length > 0) {
  fail(
    broken.map(([file]) => `${file} differs from its hash in the manifest; restore it from git.`),
  );
}
const pins = readLines(pinsFile).map((line) => line.split('  '));
const unpinned = pins.filter(
  ([, lines, sha256]) => hashLines(readLines(manifest).slice(0, Number(lines))) !== sha256,
);
if (unpinned.length > 0) {
  fail(unpinned.map(([version]) => `The manifest does not begin as it was pinned for ${version}.`));
}
const fresh = files.filter((file) => !manifestHashes.has(file));
appendFileSync(manifest, fresh.map((file) => `${hashHistory(file)}  ${file}\n`).join(''));
console.log(fresh.length === 0 ? 'Nothing is new.' : `Added ${fresh.join(', ')}.`);

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const lines = readLines(manifest);
const [pinnedVersion, pinnedLines] = pins.at(-1) ?? [];
if (pinnedVersion !== version || Number(pinnedLines) !== lines.length) {
  appendFileSync(pinsFile, `${version}  ${lines.length}  ${hashLines(lines)}\n`);
}
