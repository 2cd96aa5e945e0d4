import { Contention } from '../../../src/base/mongo';
import { explain } from '../../../src/cli/failure';
import { readSettings } from '../../../src/cli/settings';
import { readApprovalLimits } from '../../../src/domain/operators/approval';
import { useTempFolder } from '../../unit/temp-folder';

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

const folder = useTempFolder();
let DATA_DIR: string;

beforeEach(() => {
  DATA_DIR = folder.at();
});

const DEFAULTS = {
  ...{ keysDir: undefined, keysFile: undefined, allowPrivate: false, deniedNetworks: '' },
  ...{ temporal: { address: '127.0.0.1:7233', namespace: 'default' }, taskQueuePrefix: '' },
  ...{ limits: readApprovalLimits(), publicUrl: 'http://localhost:8080', allowPlainText: false },
  ...{ liveConnectors: '', sandboxConnectors: '' },
};

test('all settings come from the running stack without an environment', () => {
  folder.write('stack.json', JSON.stringify(STACK));
  expect(readSettings({ DATA_DIR })).toEqual({
    ...DEFAULTS,
    dataDir: DATA_DIR,
    mongodb: { uri: STACK.mongodb.uri, db: 'shop' },
    temporal: { address: '127.0.0.1:7301', namespace: 'shop' },
    taskQueuePrefix: 'shop-1',
    keysFile: '/data/keys.json',
    allowPrivate: true,
    publicUrl: 'https://pay.example',
    liveConnectors: 'acme=visa',
    source: folder.at('stack.json'),
  });
});

test('all settings come from the environment and its defaults without a stack', () => {
  const uri = 'mongodb://db.example';
  const networks = '198.51.100.0/24, 2001:db8::/32';
  const own = { WEBHOOK_DENY_CIDRS: networks, TASK_QUEUE_PREFIX: 'eu_2-a' };
  expect(readSettings({ DATA_DIR, MONGODB_URI: uri, KEYS_FILE: '', ...own })).toEqual({
    ...{ ...DEFAULTS, dataDir: DATA_DIR, mongodb: { uri, db: 'payments' } },
    ...{ deniedNetworks: networks, taskQueuePrefix: 'eu_2-a', source: 'the environment' },
  });
});

test('each variable of the environment replaces the setting of the stack', () => {
  folder.write('stack.json', JSON.stringify(STACK));
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
  folder.write('stack.json', JSON.stringify(STACK));
  expect(readSettings({ DATA_DIR, ...env })).toMatchObject({
    keysFile: undefined,
    allowPrivate: false,
    temporal: { address: '127.0.0.1:7233' },
  });
});

test('the command line names the remedy if there is neither a stack nor an address', () => {
  expect(() => readSettings({ DATA_DIR })).toThrow(
    /^No stack is running here .*: run `npm start`, or set MONGODB_URI/,
  );
});

test.each(['', '{"mongodb": ', '[]', '{"mongodb": {"uri": 5}}'])(
  'the stack file %j is refused',
  (text) => {
    folder.write('stack.json', text);
    expect(() => readSettings({ DATA_DIR })).toThrow('is not the file that `npm start` writes');
  },
);

test.each([
  { WEBHOOK_ALLOW_PRIVATE: 'live' },
  { WEBHOOK_DENY_CIDRS: 'intranet' },
  { WEBHOOK_DENY_CIDRS: '198.51.100.0/33' },
  { WEBHOOK_DENY_CIDRS: '198.51.100.0/24,' },
  { TASK_QUEUE_PREFIX: "a'b" },
  { TASK_QUEUE_PREFIX: 'a b' },
  { TASK_QUEUE_PREFIX: 'é' },
  { TASK_QUEUE_PREFIX: 'a'.repeat(65) },
])('the setting %j is refused', (setting) => {
  const env = { DATA_DIR, MONGODB_URI: 'mongodb://db.example', ...setting };
  expect(() => readSettings(env)).toThrow(`${Object.keys(setting)} is "`);
});

test('a step with write conflicts for too long counts as busy, and is not done', () => {
  const conflict = new Contention('The transaction had write conflicts for 5 seconds.', 100);
  const message = expect.stringMatching(/not done: run it again/);
  expect(explain(conflict)).toEqual({ code: 'busy', message });
});
