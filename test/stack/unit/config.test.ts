import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { decideConfig, readEnvironment } from '../../../stack/config';
import { freePort, LOOPBACK, needPorts, reservePorts } from '../../../stack/ports';
import { silentProgress } from '../../../stack/terminal';
import { readArguments } from '../../../stack/usage';
import { useTempFolder } from '../../unit/temp-folder';

const folder = useTempFolder();

const decide = (env: NodeJS.ProcessEnv) =>
  decideConfig(readEnvironment({ DATA_DIR: folder.at(), ...env }), env, silentProgress);

describe('the arguments of npm start', () => {
  test.each([
    [[], undefined],
    [['--inspect', 'worker'], { part: 'worker', port: 9229 }],
    [['--inspect=api'], { part: 'api', port: 9229 }],
    [['--inspect', 'sandbox_bank:9300'], { part: 'sandbox_bank', port: 9300 }],
  ])('may be %j', (words, inspect) => {
    expect(readArguments(words)).toEqual({ help: false, watch: false, inspect });
  });

  test.each([
    [['--inspect', 'mongodb'], '--inspect mongodb: it takes api, worker, sandbox_bank'],
    [['--inspect', 'worker:0'], '--inspect worker:0: it takes'],
    [['--inspect', 'worker:99999'], '--inspect worker:99999: it takes'],
    [['--inspect', 'worker:'], '--inspect worker:: it takes'],
    [['--inspect'], 'argument missing'],
    [['--port', '80'], "Unknown option '--port'"],
    [['api'], "Unexpected argument 'api'"],
  ])('are refused if they are %j', (words, message) => {
    expect(() => readArguments(words)).toThrow(message);
  });
});

describe('a setting', () => {
  test('has a default, which may follow from PORT', async () => {
    expect(await decide({ PORT: '9100' })).toMatchObject({
      ...{ port: 9100, publicUrl: 'http://localhost:9100', sandboxBankPort: 9101 },
      ...{ sandboxAutoplay: 'on', mongodbDb: 'payments', temporalNamespace: 'default' },
    });
  });

  test('counts as not set if it is empty', async () => {
    const config = await decide({ PORT: '', MONGODB_URI: '', TEMPORAL_ADDRESS: '' });
    const { port, mongodbUri, temporalAddress } = config;
    expect([port, mongodbUri, temporalAddress]).toEqual([8080, undefined, undefined]);
  });

  test('is named with all others that are faulty', () => {
    const env = { PORT: '99999', SANDBOX_AUTOPLAY: 'maybe', MONGODB_URI: 'localhost:27017' };
    expect(() => readEnvironment(env)).toThrow(/PORT: .*MONGODB_URI: .*SANDBOX_AUTOPLAY: /s);
  });

  const OUT = { SEPA_OUT_DIR: '/out' };
  const CREDIT = 'sepa=sepa_credit_transfer';
  const INSTANT = 'sepa=multibanco|sepa_instant';
  test.each<[env: NodeJS.ProcessEnv, ...names: string[]]>([
    [OUT, 'SEPA_IN_DIR', 'SEPA_IBAN', 'SEPA_NAME', 'SANDBOX_CONN'],
    [{ ...OUT, SANDBOX_CONNECTORS: CREDIT, SEPA_IBAN: 'X' }, 'SEPA_IN_DIR', 'SEPA_NAME'],
    [{ ...OUT, SANDBOX_CONNECTORS: INSTANT }, 'SEPA_INSTANT: sepa serves sepa_instant only if'],
    [{ SEPA_FILE_MIN: '0' }, 'SEPA_FILE_MIN: must be a number of payouts, 1 to 10000'],
    [{ SEPA_INSTANT: 'on' }, 'SEPA_INSTANT: must be yes'],
    [{ SEPA_INSTANT_SECONDS: '-1' }, 'SEPA_INSTANT_SECONDS: must be 0 to 3600'],
    [{ SEPA_INSTANT_FINAL: 'never' }, 'SEPA_INSTANT_FINAL: must be status or booking'],
    [{ SEPA_INSTANT_OVERDUE_SECONDS: '0' }, 'SEPA_INSTANT_OVERDUE_SECONDS: must be above 0'],
  ])('for SEPA files is missed by its name: %j', (env, ...names) => {
    for (const name of names) expect(() => readEnvironment(env)).toThrow(name);
  });
});

describe('a port of a server', () => {
  test('stays that of the first start', async () => {
    const isSame = async () => {
      const [first, second] = [await decide({}), await decide({})];
      return second.mongodbPort === first.mongodbPort && second.temporalPort === first.temporalPort;
    };
    // A program next to the tests may take one between two starts, hardly three times.
    expect((await isSame()) || (await isSame()) || (await isSame())).toBe(true);
  });

  test.each(['PORT', 'SANDBOX_BANK_PORT', 'TEMPORAL_UI_PORT'])(
    'changes once %s has its number',
    async (variable) => {
      const { mongodbPort } = await decide({});
      const config = await decide({ [variable]: String(mongodbPort) });
      expect(config.mongodbPort).not.toBe(mongodbPort);
    },
  );

  test('is never one that is reserved for something else', async () => {
    const port = 1 + (await freePort());
    reservePorts([port]);
    await expect(freePort({ lowest: port, highest: port + 1 })).rejects.toThrow('No port');
  });

  test('changes for the Temporal UI if PORT has its usual number', async () => {
    expect((await decide({ PORT: '8233' })).temporalUiPort).not.toBe(8233);
  });

  test('is refused with its variable if another program listens on it, and free ones are not', async () => {
    const [port, free] = [await freePort(), await freePort()];
    const other = createServer().listen(port, LOOPBACK);
    await once(other, 'listening');
    const refusal = `Port ${port} (PORT) is taken by another program: set PORT to another.`;
    await expect(needPorts({ PORT: port })).rejects.toThrow(refusal);
    const both = needPorts({ PORT: free, SANDBOX_BANK_PORT: port });
    await expect(both).rejects.not.toThrow(String(free));
    await expect(needPorts({ PORT: free })).resolves.toBeUndefined();
    other.close();
  });
});

test('a MongoDB that npm start runs has users with stored passwords, and any other has its own', async () => {
  const external = await decide({ MONGODB_URI: 'mongodb://db.example/?replicaSet=shop' });
  expect(external.mongodbLogin).toBeUndefined();
  expect(readdirSync(folder.at())).toEqual(['ports.json']);
  const { mongodbLogin: login } = await decide({});
  const users = ['operator', 'api', 'worker', 'sandbox_bank', 'sepa'];
  expect(Object.keys(login?.passwords ?? {})).toEqual(users);
  expect(new Set(Object.values(login?.passwords ?? {})).size).toBe(5);
  expect([folder.mode('mongodb-login.json'), folder.mode('mongodb.key')]).toEqual([0o600, 0o600]);
  expect((await decide({})).mongodbLogin).toEqual(login);
});
