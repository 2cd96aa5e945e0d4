import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boundLog, createLogCheck } from '../../../stack/log-file';

let folder: string;
let log: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stack-log-'));
  log = join(folder, 'api.log');
  writeFileSync(log, 'a long line');
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a log beyond the limit continues empty, with a copy next to it', () => {
  boundLog(log, 100);
  expect(existsSync(`${log}.1`)).toBe(false);
  boundLog(log, 10);
  expect(statSync(log).size).toBe(0);
  expect(readFileSync(`${log}.1`, 'utf8')).toBe('a long line');
});

test.each(['ENOSPC', 'EDQUOT'])('on %s it continues empty, without a copy', (code) => {
  boundLog(log, 10, (_from, to) => {
    writeFileSync(to, 'a lo');
    throw Object.assign(new Error('no space'), { code });
  });
  expect(statSync(log).size).toBe(0);
  expect(existsSync(`${log}.1`)).toBe(false);
});

test('a log that cannot be rotated stops nothing, and is reported once', () => {
  const other = join(folder, 'worker.log');
  mkdirSync(`${log}.1`);
  const reports: string[] = [];
  const check = createLogCheck([log, other], (text) => void reports.push(text), 10);
  for (const text of ['a long line', 'another long line']) {
    writeFileSync(other, text);
    check();
    expect(readFileSync(`${other}.1`, 'utf8')).toBe(text);
  }
  expect(reports).toEqual([expect.stringContaining(`${log} grows: `)]);
  expect(readFileSync(log, 'utf8')).toBe('a long line');
});
