import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeWhole } from '../../../../connectors/sepa/files';

const NAME = 'pain.001.xml';
const DAY_MS = 86_400_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sepa-files-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('processes that write the same file at once do not take it from each other', async () => {
  const bytes = Buffer.alloc(4 * 1024 * 1024, 'x');
  const seen = new Set<number>();
  const write = async () => {
    await writeWhole(folder, NAME, bytes);
    seen.add(readFileSync(join(folder, NAME)).length);
  };
  await Promise.all(Array.from({ length: 8 }, write));
  expect([...seen]).toEqual([bytes.length]);
  expect(readdirSync(folder)).toEqual([NAME]);
});

test('a write that fails leaves no part of the file', async () => {
  mkdirSync(join(folder, NAME, 'taken'), { recursive: true });
  await expect(writeWhole(folder, NAME, Buffer.from('text'))).rejects.toThrow();
  expect(readdirSync(folder)).toEqual([NAME]);
});

test('what killed processes did not finish is removed after a day, and nothing else', async () => {
  const [abandoned, growing, foreign] = [
    '.0123456789abcdef.part',
    `.${'0'.repeat(16)}.part`,
    '.x.part',
  ];
  const before = (Date.now() - DAY_MS) / 1_000 - 60;
  for (const name of [abandoned, growing, foreign]) {
    writeFileSync(join(folder, name), '');
    if (name !== growing) utimesSync(join(folder, name), before, before);
  }
  await writeWhole(folder, NAME, Buffer.from('text'));
  expect(readdirSync(folder).toSorted()).toEqual([growing, foreign, NAME].toSorted());
});
