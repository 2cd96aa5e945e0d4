import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readKeys } from '../../../src/config';
import { keysFile } from '../../../src/keys/file';
import { tryLock } from '../../../src/os/lock';
import { boundLog, lastLines } from '../../../stack/log-file';
import {
  readState,
  type StackState,
  stateFile,
  writeState,
  writeWhole,
} from '../../../stack/state-file';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stack-data-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const STATE: StackState = {
  api: { pid: 1, url: 'http://localhost:1' },
  worker: { pid: 2 },
  sandbox_bank: { pid: null },
  temporal: { pid: 3, address: '127.0.0.1:2', ui_url: null, namespace: 'default' },
  mongodb: { pid: 4, uri: 'mongodb://127.0.0.1:3' },
  settings: {
    MONGODB_DB: 'payments',
    TASK_QUEUE_PREFIX: '',
    KEYS_FILE: '/keys.json',
    WEBHOOK_ALLOW_PRIVATE: 'sandbox',
    PUBLIC_URL: 'http://localhost:1',
    LIVE_CONNECTORS: '',
  },
};

describe('stack.json', () => {
  test('reads back as it was written', () => {
    writeState(folder, STATE);
    expect(readState(folder)).toEqual(STATE);
  });

  test('is replaced whole: who has it open keeps reading the old state to its end', () => {
    writeState(folder, STATE);
    const before = readFileSync(stateFile(folder), 'utf8');
    const file = openSync(stateFile(folder), 'r');
    writeState(folder, { ...STATE, worker: { pid: null } });
    expect(readFileSync(file, 'utf8')).toBe(before);
    closeSync(file);
    expect(readState(folder)?.worker.pid).toBeNull();
  });

  test('that is damaged counts as absent', () => {
    writeWhole(stateFile(folder), '{"api": ');
    expect(readState(folder)).toBeUndefined();
  });
});

describe('the lock of a data folder', () => {
  const path = () => join(folder, 'launcher.lock');

  test('is refused while its holder lives, and free again once it is released', () => {
    const first = tryLock(path());
    expect(first.held).toBeUndefined();
    expect(tryLock(path()).held?.pid).toBe(process.pid);
    first.release();
    expect(tryLock(path()).held).toBeUndefined();
  });

  test('is taken over from a process that has ended', () => {
    tryLock(path());
    const lock = JSON.parse(readFileSync(path(), 'utf8'));
    writeFileSync(path(), JSON.stringify({ ...lock, pid: 2 ** 22 - 1 }));
    expect(tryLock(path()).held).toBeUndefined();
  });

  test('is taken over when the process id now belongs to a later process', () => {
    tryLock(path());
    const lock = JSON.parse(readFileSync(path(), 'utf8'));
    writeFileSync(path(), JSON.stringify({ ...lock, born: 'earlier' }));
    expect(tryLock(path()).held).toBeUndefined();
  });

  test('that was never fully written is taken over', () => {
    writeFileSync(path(), '');
    expect(tryLock(path()).held).toBeUndefined();
  });
});

test('the key file is made once, for its owner only, as the service reads it', () => {
  const path = keysFile(folder);
  const text = readFileSync(path, 'utf8');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const keys = readKeys(path);
  for (const { current, keys: ring } of Object.values(keys)) expect(ring[current]).toHaveLength(32);
  keysFile(folder);
  expect(readFileSync(path, 'utf8')).toBe(text);
});

test('a log past its bound is set aside and goes on empty', () => {
  const path = join(folder, 'part.log');
  writeFileSync(path, 'one\ntwo\nthree\n');
  expect(lastLines(path, 2)).toBe('two\nthree');
  boundLog(path, 5);
  expect(statSync(path).size).toBe(0);
  expect(readFileSync(`${path}.1`, 'utf8')).toBe('one\ntwo\nthree\n');
});
