import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tryLock } from '../../../src/base/file-lock';
import { FORMAT } from '../../../src/domain/format';
import { ensureKeys } from '../../../src/encryption/ensure-keys';
import { followPairs } from '../../../src/encryption/recipient-pairs';
import { readKeys } from '../../../src/encryption/service-keys';
import {
  lockDataDir,
  markDataDir,
  readState,
  replaceFile,
  type StackState,
  stateFile,
  writeState,
} from '../../../stack/data-dir';
import { boundLog, createLogCheck, lastLines } from '../../../stack/log-file';
import { useTempFolder } from '../../unit/temp-folder';

const folder = useTempFolder();

const STATE: StackState = {
  api: { pid: 1, url: 'http://localhost:1' },
  worker: { pid: 2 },
  sandbox_bank: { pid: null },
  temporal: { pid: 3, address: '127.0.0.1:2', ui_url: null, namespace: 'default' },
  mongodb: { pid: 4, uri: 'mongodb://127.0.0.1:3' },
  metrics: { api: 'http://a', worker: 'http://w', sandbox_bank: 'http://s' },
  settings: {
    ...{ MONGODB_DB: 'payments', TASK_QUEUE_PREFIX: '', KEYS_FILE: '/keys.json', KEYS_DIR: '/k' },
    ...{ WEBHOOK_ALLOW_PRIVATE: 'sandbox', PUBLIC_URL: 'http://localhost:1' },
    ...{ LIVE_CONNECTORS: '', SANDBOX_CONNECTORS: '' },
  },
};

describe('the format of a data directory', () => {
  test('is written at the first start, and lets the next ones go on', () => {
    markDataDir(folder.at());
    expect(folder.read('version')).toBe(`format ${FORMAT}\n`);
    folder.write('ports.json', '{}');
    markDataDir(folder.at());
  });

  const NONE = 'data without a format number';
  test.each([
    ['ports.json', '', NONE],
    ['mongodb', '', NONE],
    ['temporal', '', NONE],
    ['version', '2\n', NONE],
    ['version', `format ${FORMAT + 1}\n`, `format ${FORMAT + 1}`],
  ])('is refused where %s has %j and no other file is there', (name, text, found) => {
    folder.write(name, text);
    const why = `has ${found}, .* only format \\d+\\. Set DATA_DIR to another`;
    expect(() => markDataDir(folder.at())).toThrow(new RegExp(`^DATA_DIR .* ${why}`));
    expect(readdirSync(folder.at())).toEqual([name]);
  });
});

describe('stack.json', () => {
  test('is replaced as a whole: a reader that has it open reads the old state to its end', () => {
    writeState(folder.at(), STATE);
    expect(readState(folder.at())).toEqual(STATE);
    const before = readFileSync(stateFile(folder.at()), 'utf8');
    const file = openSync(stateFile(folder.at()), 'r');
    writeState(folder.at(), { ...STATE, worker: { pid: null } });
    expect(readFileSync(file, 'utf8')).toBe(before);
    closeSync(file);
    expect(readState(folder.at())?.worker.pid).toBeNull();
  });

  test('counts as absent if it is damaged', () => {
    replaceFile(stateFile(folder.at()), '{"api": ');
    expect(readState(folder.at())).toBeUndefined();
  });
});

describe('the lock of a data folder', () => {
  const lock = () => tryLock(folder.at('launcher.lock'));

  test('names who has it, where it serves and how to stop it, and is free once it is released', () => {
    const unlock = lockDataDir(folder.at());
    expect(lock().holder?.pid).toBe(process.pid);
    writeState(folder.at(), { ...STATE, temporal: { ...STATE.temporal, ui_url: 'http://t:2' } });
    const { pid } = process;
    expect(() => lockDataDir(folder.at())).toThrow(
      `Another npm start (pid ${pid}) runs on DATA_DIR ${folder.at()}. It serves http://localhost:1 and http://t:2. ` +
        `Stop it first, with Ctrl-C or \`kill ${pid}\`, or set DATA_DIR, PORT and TEMPORAL_UI_PORT for a second stack.`,
    );
    expect(readState(folder.at())?.api).toEqual(STATE.api);
    unlock();
    lockDataDir(folder.at())();
    expect(lock().holder).toBeUndefined();
  });

  test.each([
    ['its process has ended', (stored: object) => JSON.stringify({ ...stored, pid: 2 ** 22 - 1 })],
    ['its id is a later process', (stored: object) => JSON.stringify({ ...stored, born: 'then' })],
    ['it was never fully written', () => ''],
  ])('is free when %s', (_, write) => {
    lock();
    folder.write('launcher.lock', write(JSON.parse(folder.read('launcher.lock'))));
    expect(lock().holder).toBeUndefined();
  });
});

describe('the keys', () => {
  test('are created once, and only their owner may read them', () => {
    const paths = ensureKeys(folder.at());
    const text = folder.read('keys.json');
    expect(folder.mode('keys.json')).toBe(0o600);
    expect(Object.keys(readKeys(paths.KEYS_FILE).seal.keys)).toEqual(['k1']);
    for (const environment of ['sandbox', 'live'] as const) {
      expect(() => followPairs(paths.KEYS_DIR, environment, 'private')).not.toThrow();
    }
    expect(ensureKeys(folder.at())).toEqual(paths);
    expect(folder.read('keys.json')).toBe(text);
  });

  test('of live connectors that pay out are created at the first start only', () => {
    const { KEYS_DIR } = ensureKeys(folder.at(), ['acme']);
    const follow = (name: string) => () => followPairs(KEYS_DIR, `live-${name}`, 'private');
    expect(follow('acme')).not.toThrow();
    ensureKeys(folder.at(), ['acme', 'later']);
    expect(follow('later')).toThrow('`keys split` creates it');
  });

  test.each(['keys.json', 'keys/recipients.live.json'])(
    'are never replaced where there is data: a missing %s is refused',
    (name) => {
      ensureKeys(folder.at());
      mkdirSync(folder.at('mongodb'));
      rmSync(folder.at(name));
      expect(() => ensureKeys(folder.at())).toThrow(`missing: ${folder.at(name)}`);
    },
  );
});

describe('a log', () => {
  const LINES = 'one\ntwo\nthree\n';

  test('beyond its limit continues empty, with a copy next to it', () => {
    const log = folder.write('api.log', LINES);
    expect(lastLines(log, 2)).toBe('two\nthree');
    for (const bytesMax of [100, 10]) {
      expect(existsSync(`${log}.1`)).toBe(false);
      boundLog(log, bytesMax);
    }
    expect([folder.read('api.log'), folder.read('api.log.1')]).toEqual(['', LINES]);
  });

  test.each(['ENOSPC', 'EDQUOT'])('continues empty, without a copy, after %s', (code) => {
    const log = folder.write('api.log', LINES);
    boundLog(log, 10, (_from, to) => {
      folder.write('api.log.1', 'a part');
      expect(to).toBe(folder.at('api.log.1'));
      throw Object.assign(new Error('no space'), { code });
    });
    expect(folder.read('api.log')).toBe('');
    expect(existsSync(`${log}.1`)).toBe(false);
  });

  test('that cannot be rotated is reported once, and the others are still rotated', () => {
    const log = folder.write('api.log', LINES);
    mkdirSync(`${log}.1`);
    const reports: string[] = [];
    const logs = [log, folder.at('worker.log')];
    const check = createLogCheck(logs, (text) => void reports.push(text), 10);
    for (const text of ['a long line', 'another long line']) {
      folder.write('worker.log', text);
      check();
      expect(folder.read('worker.log.1')).toBe(text);
    }
    expect(reports).toEqual([expect.stringContaining(`${log} grows: `)]);
    expect(folder.read('api.log')).toBe(LINES);
  });
});
