import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(__dirname, '..');
/** A line for each history, `sha256  name`, in the order in which they were saved. */
const MANIFEST = readFileSync(join(FOLDER, 'manifest.txt'), 'utf8');
/** Beginning of the manifest of a version; a release moves all three. */
const RELEASED = {
  version: '2.0.0',
  lines: 106,
  sha256: '5325ec8ca7457315039e815315c998d32547b32c0cb7270e7019eb1f1216bc7e',
};

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');
const hashOf = (name: string) => sha256(readFileSync(join(FOLDER, 'histories', name)));
const lines = MANIFEST.split('\n').slice(0, -1);
const sealed = lines.map((line) => {
  const [hash = '', name = ''] = line.split('  ');
  return { hash, name };
});

test.each(sealed)('$name is as it was sealed', ({ hash, name }) => {
  expect(hashOf(name)).toBe(hash);
});

test('every history is in the manifest, once', () => {
  const names = sealed.map(({ name }) => name);
  expect(names.toSorted()).toEqual(readdirSync(join(FOLDER, 'histories')).toSorted());
});

test(`the manifest begins as it was released with ${RELEASED.version}`, () => {
  const released = lines.slice(0, RELEASED.lines).map((line) => `${line}\n`);
  expect(sha256(released.join(''))).toBe(RELEASED.sha256);
});
