import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '../../../src/cli/settings';
import { DEFAULT_LIMITS } from '../../../src/domain/approval';

/** As `npm start` writes it. */
const STACK = {
  api: { pid: 1, url: 'http://localhost:8080' },
  worker: { pid: 2 },
  sandbox_bank: { pid: null },
  temporal: { pid: null, address: '127.0.0.1:7301', ui_url: null, namespace: 'shop' },
  mongodb: { pid: 5, uri: 'mongodb://127.0.0.1:27301/?replicaSet=rs0' },
  settings: {
    MONGODB_DB: 'shop',
    TASK_QUEUE_PREFIX: 'shop-1',
    KEYS_FILE: '/data/keys.json',
    WEBHOOK_ALLOW_PRIVATE: 'sandbox',
    PUBLIC_URL: 'https://pay.example/',
    LIVE_CONNECTORS: 'acme=visa',
  },
};

let DATA_DIR: string;

beforeEach(() => {
  DATA_DIR = mkdtempSync(join(tmpdir(), 'cli-settings-'));
});
afterEach(() => rmSync(DATA_DIR, { recursive: true, force: true }));

function writeStack(stack: unknown): void {
  const text = typeof stack === 'string' ? stack : JSON.stringify(stack);
  writeFileSync(join(DATA_DIR, 'stack.json'), text);
}

test('without an environment everything is taken from the stack that runs here', () => {
  writeStack(STACK);
  expect(readSettings({ DATA_DIR })).toEqual({
    dataDir: DATA_DIR,
    keysDir: undefined,
    mongodb: { uri: STACK.mongodb.uri, db: 'shop' },
    temporal: { address: '127.0.0.1:7301', namespace: 'shop' },
    taskQueuePrefix: 'shop-1',
    keysFile: '/data/keys.json',
    allowPrivate: true,
    deniedNetworks: '',
    limits: DEFAULT_LIMITS,
    publicUrl: 'https://pay.example',
    allowPlainText: false,
    liveConnectors: 'acme=visa',
    sandboxConnectors: '',
    source: join(DATA_DIR, 'stack.json'),
  });
});

test('without a stack everything is taken from the environment, with its defaults', () => {
  expect(readSettings({ DATA_DIR, MONGODB_URI: 'mongodb://db.example', KEYS_FILE: '' })).toEqual({
    dataDir: DATA_DIR,
    keysDir: undefined,
    mongodb: { uri: 'mongodb://db.example', db: 'payments' },
    temporal: { address: '127.0.0.1:7233', namespace: 'default' },
    taskQueuePrefix: '',
    keysFile: undefined,
    allowPrivate: false,
    deniedNetworks: '',
    limits: DEFAULT_LIMITS,
    publicUrl: 'http://localhost:8080',
    allowPlainText: false,
    liveConnectors: '',
    sandboxConnectors: '',
    source: 'the environment',
  });
});

test('the environment goes before the stack, variable by variable', () => {
  writeStack(STACK);
  const env = { DATA_DIR, TEMPORAL_ADDRESS: 'temporal.example:7233', WEBHOOK_ALLOW_PRIVATE: '' };
  expect(readSettings({ ...env, MONGODB_URI: STACK.mongodb.uri })).toMatchObject({
    mongodb: { db: 'shop' },
    temporal: { address: 'temporal.example:7233', namespace: 'shop' },
    keysFile: '/data/keys.json',
  });
});

test.each([
  { MONGODB_URI: 'mongodb://elsewhere.example' },
  { MONGODB_URI: STACK.mongodb.uri, MONGODB_DB: 'other' },
])('the keys of a stack are not used for another database: %j', (env) => {
  writeStack(STACK);
  expect(readSettings({ DATA_DIR, ...env })).toMatchObject({
    keysFile: undefined,
    allowPrivate: false,
    temporal: { address: '127.0.0.1:7233' },
  });
});

test('neither a stack nor an address: it says what to do', () => {
  expect(() => readSettings({ DATA_DIR })).toThrow(
    /^No stack is running here .*: run `npm start`, or set MONGODB_URI/,
  );
});

test.each(['', '{"mongodb": ', '[]', '{"mongodb": {"uri": 5}}'])(
  'a stack file that is not one is refused: %j',
  (text) => {
    writeStack(text);
    expect(() => readSettings({ DATA_DIR })).toThrow('is not the file that `npm start` writes');
  },
);

test('WEBHOOK_ALLOW_PRIVATE is "sandbox" or empty, nothing else', () => {
  const env = { DATA_DIR, MONGODB_URI: 'mongodb://db.example', WEBHOOK_ALLOW_PRIVATE: 'live' };
  expect(() => readSettings(env)).toThrow('WEBHOOK_ALLOW_PRIVATE is "live"');
});

test('WEBHOOK_DENY_CIDRS is a list of networks, nothing else', () => {
  const env = { DATA_DIR, MONGODB_URI: 'mongodb://db.example' };
  const given = (WEBHOOK_DENY_CIDRS: string) => readSettings({ ...env, WEBHOOK_DENY_CIDRS });
  expect(given('198.51.100.0/24, 2001:db8::/32').deniedNetworks).toBe(
    '198.51.100.0/24, 2001:db8::/32',
  );
  for (const none of ['intranet', '198.51.100.0/33', '198.51.100.0/24,']) {
    expect(() => given(none)).toThrow('WEBHOOK_DENY_CIDRS is');
  }
});

test('a prefix of the queues is refused unless it can stand in a query', () => {
  const env = { DATA_DIR, MONGODB_URI: 'mongodb://db.example' };
  expect(readSettings({ ...env, TASK_QUEUE_PREFIX: 'eu_2-a' }).taskQueuePrefix).toBe('eu_2-a');
  for (const TASK_QUEUE_PREFIX of ["a'b", 'a b', 'é', 'a'.repeat(65)]) {
    expect(() => readSettings({ ...env, TASK_QUEUE_PREFIX })).toThrow('TASK_QUEUE_PREFIX is');
  }
});
