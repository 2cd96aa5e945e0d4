import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decideConfig, readEnvironment } from '../../../stack/config';
import { freePort, LOOPBACK, needPorts, reservePorts } from '../../../stack/ports';
import { silentProgress } from '../../../stack/terminal';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stack-config-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const decide = (env: NodeJS.ProcessEnv) =>
  decideConfig(readEnvironment({ DATA_DIR: folder, ...env }), env, silentProgress);

test('a setting that is not given has its default, others follow from PORT', async () => {
  expect(await decide({ PORT: '9100' })).toMatchObject({
    port: 9100,
    publicUrl: 'http://localhost:9100',
    sandboxBankPort: 9101,
    sandboxAutoplay: 'on',
    mongodbDb: 'payments',
    temporalNamespace: 'default',
  });
});

test('an empty variable counts as not set', async () => {
  const config = await decide({ PORT: '', MONGODB_URI: '', TEMPORAL_ADDRESS: '' });
  expect(config.port).toBe(8080);
  expect(config.mongodbUri).toBeUndefined();
  expect(config.temporalAddress).toBeUndefined();
});

test('every variable at fault is named', () => {
  const env = { PORT: '99999', SANDBOX_AUTOPLAY: 'maybe', MONGODB_URI: 'localhost:27017' };
  expect(() => readEnvironment(env)).toThrow(/PORT: .*MONGODB_URI: .*SANDBOX_AUTOPLAY: /s);
});

test('the servers keep the ports that the first start chose, unless somebody has one of them', async () => {
  const isKept = async () => {
    const first = await decide({});
    const second = await decide({});
    return second.mongodbPort === first.mongodbPort && second.temporalPort === first.temporalPort;
  };
  // A program beside the tests may take one between two starts, hardly three times.
  expect((await isKept()) || (await isKept()) || (await isKept())).toBe(true);
});

test.each(['PORT', 'SANDBOX_BANK_PORT', 'TEMPORAL_UI_PORT'])(
  'a server does not keep its port once %s names it',
  async (variable) => {
    const { mongodbPort } = await decide({});
    const config = await decide({ [variable]: String(mongodbPort) });
    expect(config.mongodbPort).not.toBe(mongodbPort);
  },
);

test('a port on which something will listen is not drawn', async () => {
  const port = 1 + (await freePort());
  reservePorts([port]);
  await expect(freePort({ lowest: port, highest: port + 1 })).rejects.toThrow('No port');
});

test('the Temporal UI leaves its usual port to what has it in the environment', async () => {
  const config = await decide({ PORT: '8233' });
  expect(config.temporalUiPort).not.toBe(8233);
});

test('a MongoDB that is started has users, whose passwords are kept; one that is given has its own', async () => {
  const given = await decide({ MONGODB_URI: 'mongodb://db.example/?replicaSet=shop' });
  expect(given.mongodbLogin).toBeUndefined();
  expect(readdirSync(folder)).toEqual(['ports.json']);
  const { mongodbLogin: login } = await decide({});
  expect(Object.keys(login?.passwords ?? {})).toEqual([
    'operator',
    'api',
    'worker',
    'sandbox_bank',
    'sepa',
  ]);
  expect(new Set(Object.values(login?.passwords ?? {})).size).toBe(5);
  for (const name of ['mongodb-login.json', 'mongodb.key']) {
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  }
  expect((await decide({})).mongodbLogin).toEqual(login);
});

test('a data directory of before the SEPA connector keeps its users and ports', async () => {
  const before = await decide({});
  const login = join(folder, 'mongodb-login.json');
  const ports = join(folder, 'ports.json');
  for (const [path, name] of [
    [login, 'sepa'],
    [ports, 'sepa_metrics'],
  ] as const) {
    const { [name]: _added, ...old } = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify(old));
  }
  const after = await decide({});
  const { sepa, ...others } = after.mongodbLogin?.passwords ?? { sepa: '' };
  expect(sepa).toMatch(/^[0-9a-f]{64}$/);
  expect(before.mongodbLogin?.passwords).toMatchObject(others);
  expect(after.mongodbPort).toBe(before.mongodbPort);
});

test.each([
  [{ SEPA_OUT_DIR: '/out' }, ['SEPA_IN_DIR', 'SEPA_IBAN', 'SEPA_NAME', 'SANDBOX_CONNECTORS']],
  [
    { SEPA_OUT_DIR: '/out', SANDBOX_CONNECTORS: 'sepa=sepa_credit_transfer', SEPA_IBAN: 'X' },
    ['SEPA_IN_DIR', 'SEPA_NAME'],
  ],
])('SEPA files with %j alone are refused, naming what is missing', (env, names) => {
  let message = '';
  try {
    readEnvironment(env);
  } catch (error) {
    message = String(error);
  }
  for (const name of names) expect(message).toContain(name);
});

describe('with a port that another program listens on', () => {
  let other: Server;
  let port: number;
  beforeEach(async () => {
    port = await freePort();
    other = createServer();
    await new Promise<void>((resolve) => other.listen(port, LOOPBACK, resolve));
  });
  afterEach(() => new Promise((resolve) => other.close(resolve)));

  test('the refusal names the port and the variable that moves it', async () => {
    await expect(needPorts({ PORT: port })).rejects.toThrow(
      `Port ${port} (PORT) is taken by another program: set PORT to another.`,
    );
  });

  test('free ports beside it are not named', async () => {
    const free = await freePort();
    await expect(needPorts({ PORT: free, SANDBOX_BANK_PORT: port })).rejects.not.toThrow(
      String(free),
    );
    await expect(needPorts({ PORT: free })).resolves.toBeUndefined();
  });
});
