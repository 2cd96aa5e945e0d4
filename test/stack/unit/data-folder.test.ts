import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryLock } from '../../../src/base/file-lock';
import { ensureKeys } from '../../../src/encryption/ensure-keys';
import { followPairs } from '../../../src/encryption/recipient-pairs';
import { readKeys } from '../../../src/encryption/service-keys';
import { markDataDir } from '../../../stack/data-version';
import { boundLog, lastLines } from '../../../stack/log-file';
import {
  readState,
  replaceFile,
  type StackState,
  stateFile,
  writeState,
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
  metrics: {
    api: 'http://127.0.0.1:4/metrics',
    worker: 'http://127.0.0.1:5/metrics',
    sandbox_bank: 'http://127.0.0.1:6/metrics',
  },
  settings: {
    MONGODB_DB: 'payments',
    TASK_QUEUE_PREFIX: '',
    KEYS_FILE: '/keys.json',
    KEYS_DIR: '/keys',
    WEBHOOK_ALLOW_PRIVATE: 'sandbox',
    PUBLIC_URL: 'http://localhost:1',
    LIVE_CONNECTORS: '',
    SANDBOX_CONNECTORS: '',
  },
};

describe('the version of a data directory', () => {
  test('is written at the first start, and is no hindrance to the next', () => {
    markDataDir(folder);
    expect(readFileSync(join(folder, 'version'), 'utf8')).toBe('2\n');
    writeFileSync(join(folder, 'ports.json'), '{}');
    markDataDir(folder);
  });

  test.each(['ports.json', 'mongodb', 'temporal'])(
    'is 1 where %s has none beside it, which is refused',
    (name) => {
      writeFileSync(join(folder, name), '');
      expect(() => markDataDir(folder)).toThrow(/data of version 1.*Move it away/);
      expect(existsSync(join(folder, 'version'))).toBe(false);
    },
  );

  test('is refused where it is a later one', () => {
    writeFileSync(join(folder, 'version'), '3\n');
    expect(() => markDataDir(folder)).toThrow(/data of version 3/);
  });
});

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
    replaceFile(stateFile(folder), '{"api": ');
    expect(readState(folder)).toBeUndefined();
  });
});

describe('the lock of a data folder', () => {
  const path = () => join(folder, 'launcher.lock');

  test('is refused while its holder lives, and free again once it is released', () => {
    const first = tryLock(path());
    expect(first.holder).toBeUndefined();
    expect(tryLock(path()).holder?.pid).toBe(process.pid);
    first.release();
    expect(tryLock(path()).holder).toBeUndefined();
  });

  test('is taken over from a process that has ended', () => {
    tryLock(path());
    const lock = JSON.parse(readFileSync(path(), 'utf8'));
    writeFileSync(path(), JSON.stringify({ ...lock, pid: 2 ** 22 - 1 }));
    expect(tryLock(path()).holder).toBeUndefined();
  });

  test('is taken over when the process id now belongs to a later process', () => {
    tryLock(path());
    const lock = JSON.parse(readFileSync(path(), 'utf8'));
    writeFileSync(path(), JSON.stringify({ ...lock, born: 'earlier' }));
    expect(tryLock(path()).holder).toBeUndefined();
  });

  test('that was never fully written is taken over', () => {
    writeFileSync(path(), '');
    expect(tryLock(path()).holder).toBeUndefined();
  });
});

test('the keys are created once, for their owner only, as the service reads them', () => {
  const paths = ensureKeys(folder);
  const text = readFileSync(paths.KEYS_FILE, 'utf8');
  expect(statSync(paths.KEYS_FILE).mode & 0o777).toBe(0o600);
  expect(Object.keys(readKeys(paths.KEYS_FILE).seal.keys)).toEqual(['k1']);
  for (const environment of ['sandbox', 'live'] as const) {
    expect(() => followPairs(paths.KEYS_DIR, environment, 'private')).not.toThrow();
  }
  expect(ensureKeys(folder)).toEqual(paths);
  expect(readFileSync(paths.KEYS_FILE, 'utf8')).toBe(text);
});

test('live connectors that pay out have key pairs of their own from the first start only', () => {
  const { KEYS_DIR } = ensureKeys(folder, ['acme']);
  expect(() => followPairs(KEYS_DIR, 'live-acme', 'private')).not.toThrow();
  ensureKeys(folder, ['acme', 'later']);
  expect(() => followPairs(KEYS_DIR, 'live-later', 'private')).toThrow('`keys split` creates it');
});

test.each(['keys.json', 'keys/recipients.live.json'])(
  'where there is data, a %s that is missing is never replaced',
  (name) => {
    ensureKeys(folder);
    mkdirSync(join(folder, 'mongodb'));
    rmSync(join(folder, name));
    expect(() => ensureKeys(folder)).toThrow(`missing: ${join(folder, name)}`);
  },
);

test('a log past its bound is set aside and goes on empty', () => {
  const path = join(folder, 'part.log');
  writeFileSync(path, 'one\ntwo\nthree\n');
  expect(lastLines(path, 2)).toBe('two\nthree');
  boundLog(path, 5);
  expect(statSync(path).size).toBe(0);
  expect(readFileSync(`${path}.1`, 'utf8')).toBe('one\ntwo\nthree\n');
});
