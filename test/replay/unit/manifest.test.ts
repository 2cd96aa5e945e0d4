import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { version } from '../../../package.json';

const FOLDER = join(__dirname, '..');
const readLines = (name: string) =>
  readFileSync(join(FOLDER, name), 'utf8').split('\n').slice(0, -1);

/** A line for each history, `sha256  name`, in the order in which they were saved. */
const lines = readLines('manifest.txt');
/** A line for each build: its version, how many lines the manifest had, and their hash. */
const pins = readLines('pins.txt').map((line) => {
  const [pinned = '', count = '', hash = ''] = line.split('  ');
  return { version: pinned, lines: Number(count), hash };
});

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');
const hashHistory = (name: string) => sha256(readFileSync(join(FOLDER, 'histories', name)));
const rows = lines.map((line) => {
  const [hash = '', name = ''] = line.split('  ');
  return { hash, name };
});

test.each(rows)('$name is as the manifest has it', ({ hash, name }) => {
  expect(hashHistory(name)).toBe(hash);
});

test('every history is in the manifest, once', () => {
  const names = rows.map(({ name }) => name);
  expect(names.toSorted()).toEqual(readdirSync(join(FOLDER, 'histories')).toSorted());
});

test.each(pins)('the manifest keeps its $lines pinned lines', ({ lines: count, hash }) => {
  const pinned = lines.slice(0, count).map((line) => `${line}\n`);
  expect(sha256(pinned.join(''))).toBe(hash);
});

test('this build is pinned with all its histories, after those of every build before', () => {
  expect(pins.at(-1)).toMatchObject({ version, lines: lines.length });
  const counts = pins.map((pin) => pin.lines);
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
});
