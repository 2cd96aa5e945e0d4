import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import * as Keystore from 'ox/Keystore';
import { generatePrivateKey, mnemonicToAccount, privateKeyToAddress } from 'viem/accounts';
import { assertTls, readEvmConfig } from '../../../../connectors/evm/config';
import { decryptKeystore, readExtendedKey } from '../../../../connectors/evm/keys';
import { amountDue, createRates } from '../../../../connectors/evm/rates';
import { answer, useScriptedServer } from '../../../clients/unit/scripted-server';
import { ACCOUNT, WORDS } from '../words';

const folder = mkdtempSync(join(tmpdir(), 'evm-settings-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the extended key', () => {
  it.each([0, 1, 7, 2_147_483_647])('gives the address of index %i as a wallet does', (index) => {
    const { addressAt } = readExtendedKey(`${ACCOUNT.publicExtendedKey}\n`);
    const path = `m/44'/60'/0'/0/${index}` as const;
    expect(addressAt(index)).toBe(mnemonicToAccount(WORDS, { path }).address);
  });

  it('must be public, and is not quoted when it is refused', () => {
    const secret = ACCOUNT.privateExtendedKey;
    expect(() => readExtendedKey(secret)).toThrow(/private one/);
    const broken = `${secret.slice(0, -4)}1111`;
    expect(() => readExtendedKey(broken)).toThrow(/^The extended key is not one of BIP-32/);
  });

  it('has a fingerprint that reveals nothing of it', () => {
    const { fingerprint } = readExtendedKey(ACCOUNT.publicExtendedKey);
    expect(fingerprint).toMatch(/^[0-9a-f]{16}$/);
    expect(ACCOUNT.publicExtendedKey).not.toContain(fingerprint);
  });
});

describe('the keystore', () => {
  const key = generatePrivateKey();
  const files = () =>
    [
      Keystore.scrypt({ password: 'right', n: 1_024 }),
      Keystore.pbkdf2({ password: 'right', iterations: 1_000 }),
    ].map(([derived, options]) => JSON.stringify(Keystore.encrypt(key, derived, options)));

  it('of either kind is decrypted with its password', async () => {
    for (const file of files()) {
      expect((await decryptKeystore(file, 'right')).address).toBe(privateKeyToAddress(key));
    }
  });

  it('is refused with another password, and if it is not one', async () => {
    for (const file of files()) {
      await expect(decryptKeystore(file, 'wrong')).rejects.toThrow('does not open');
    }
    await expect(decryptKeystore('{}', 'right')).rejects.toThrow('no JSON of version 3');
  });
});

describe('the settings', () => {
  const settings = {
    rpc_url_file: '/run/secrets/rpc',
    chain_id: 1,
    xpub_file: '/run/secrets/xpub',
    usdc_address: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    keystore_file: '/run/secrets/keystore.json',
    keystore_password_file: '/run/secrets/password',
    screening_file: '/etc/evm/list.txt',
    rates: 'https://rates.example.com/',
  };
  const env = {
    EVM_CONFIG_FILE: join(folder, 'evm.json'),
    CONNECTOR_KEY_FILE: '/run/secrets/evm-key.json',
    MONGODB_URI: 'mongodb://localhost',
  };
  const read = (change: object = {}, variables: NodeJS.ProcessEnv = {}) => {
    writeFileSync(env.EVM_CONFIG_FILE, JSON.stringify({ ...settings, ...change }));
    return readEvmConfig({ ...env, ...variables });
  };

  it('have defaults for all but secrets and the choice of a chain', () => {
    const defaults = { connector: 'evm', confirmations: 12, fee_max_gwei: '200' };
    expect(read().settings).toMatchObject(defaults);
    const deposit_min = { ETH: '5' };
    expect(read({ deposit_min }).settings.deposit_min).toEqual({ ETH: '5', USDC: '10000' });
  });

  const CLEAR = { ALLOW_CLEAR_TEXT: 'yes' };
  it.each([
    [{}, {}, 'https://node.example/v1/secret', undefined, []],
    [{}, {}, 'http://127.0.0.1:8545', undefined, []],
    [{}, {}, 'http://node.example/v1/secret', undefined, ['rpc_url_file']],
    [{}, {}, 'https://node.example', 'http://second.example/secret', ['check_rpc_url_file']],
    [{ rates: 'http://rates.example/' }, {}, 'http://localhost', undefined, ['rates']],
    [{ rates_check: 'http://r.example/' }, {}, 'http://localhost', undefined, ['rates_check']],
    [{ rates: '/etc/rates.json' }, {}, 'http://[::1]:8545', undefined, []],
    [{}, CLEAR, 'http://node.example/', undefined, []],
  ])(
    '%j, %j and nodes at %s and %s lack TLS in %j',
    (change, variables, node, secondNode, names) => {
      let message = '';
      try {
        assertTls(read(change, variables), { node, secondNode });
      } catch (error) {
        message = String(Object(error).message);
      }
      expect(message).not.toContain('secret');
      expect([...message.matchAll(/^\w+/gm)].map(([name]) => name)).toEqual(names);
    },
  );

  it.each([
    ['absent', undefined, ''],
    ['empty', '', ''],
    ['absent in a trial', undefined, 'yes'],
  ])('are refused if the key for reports is %s', (_, CONNECTOR_KEY_FILE, ALLOW_LIVE_DEMO) => {
    const message = /^The environment is not usable\.\n {2}CONNECTOR_KEY_FILE: \S/;
    expect(() => read({}, { CONNECTOR_KEY_FILE, ALLOW_LIVE_DEMO })).toThrow(message);
  });

  it('are refused on live without a second node', () => {
    const live = { LIVE_CONNECTORS: 'evm=eth_ethereum', CONNECTOR_STATE_DIR: '/srv/state' };
    expect(() => read({}, live)).toThrow('needs check_rpc_url_file, the node of another provider');
    expect(read({ check_rpc_url_file: '/run/secrets/check' }, live).environment).toBe('live');
  });

  it('are refused if they use remote servers without TLS', () => {
    const remote = { TEMPORAL_ADDRESS: 'temporal.example:7233' };
    expect(() => read({}, remote)).toThrow('Temporal at temporal.example');
    expect(read({}, { ...remote, TEMPORAL_API_KEY: 'key' }).temporal.tls).toBe(true);
  });

  it('are refused with every fault, such as a token without its checksum', () => {
    const token = settings.usdc_address.replace('A0b8', 'a0B8');
    const bad = { chain_id: 'main', usdc_address: token, fee_max_gwei: '-1', start_block: '' };
    const message =
      /chain_id: .*start_block: .*usdc_address: must be an address with its checksum.*fee_max_gwei: /s;
    expect(() => read(bad)).toThrow(message);
    expect(() => read({ chainid: 1 })).toThrow('chainid');
    const decimal = { deposit_min: { ETH: '0.1' } };
    expect(() => read(decimal)).toThrow('deposit_min.ETH: must be an integer');
    const alone = { check_above: { ETH: '1' } };
    expect(() => read(alone)).toThrow('check_above: needs check_rpc_url_file');
  });

  it('are refused if the file is missing or not JSON', () => {
    const missing = { ...env, EVM_CONFIG_FILE: join(folder, 'missing.json') };
    expect(() => readEvmConfig(missing)).toThrow(/missing\.json cannot be read/);
    writeFileSync(env.EVM_CONFIG_FILE, '{');
    expect(() => readEvmConfig(env)).toThrow(/evm\.json cannot be read/);
  });
});

const now = () => new Date('2026-05-01T12:01:00Z');
const writeRates = (rates: object, as_of = '2026-05-01T12:00:00Z') =>
  JSON.stringify({ as_of, rates });

const server = useScriptedServer();
const path = join(folder, 'rates.json');
const createReader = (location = path) => createRates({ location, ageSecondsMax: 300 }, now);

test.each([
  ['ETH', 18, 10_000, 'EUR', '2000', 50_000_000_000_000_000n],
  ['USDC', 6, 1_000, 'EUR', '0.8', 12_500_000n],
  ['USDC', 6, 1, 'EUR', '3', 3_334n],
  ['ETH', 18, 99_999_999_999, 'JPY', '1', 99_999_999_999n * 10n ** 18n],
  ['USDC', 6, 1_234, 'KWD', '0.000001', 1_234_000_000_000n],
])(
  'the amount due in %s of %i digits for %i %s at a rate of %s is %s',
  (_, decimals, amount, currency, price, due) => {
    expect(amountDue({ decimals, amount, currency }, price)).toBe(due);
  },
);

test('what is due is worth the amount at least, and one unit less is not', () => {
  const price = fc.tuple(fc.bigInt(1n, 10n ** 18n), fc.integer({ min: 0, max: 18 }));
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 99_999_999_999 }), price, (amount, [digits, places]) => {
      const padded = String(digits).padStart(places + 1, '0');
      const cut = padded.length - places;
      const written = `${padded.slice(0, cut)}${places === 0 ? '' : `.${padded.slice(cut)}`}`;
      const due = amountDue({ amount, currency: 'EUR', decimals: 18 }, written);
      const worth = (units: bigint) => units * digits * 100n;
      const owed = BigInt(amount) * 10n ** BigInt(18 + places);
      expect(worth(due) >= owed && worth(due - 1n) < owed).toBe(true);
    }),
  );
});

test('rates are read over HTTP, and an error of the server is not a rate', async () => {
  const rates = { ETH: { EUR: '2000' } };
  server.script.push(answer(200, writeRates(rates)), answer(503, writeRates(rates)));
  // By its address, since undici keeps the worker open with what it tries for the name.
  const read = createReader(server.url.replace('localhost', '127.0.0.1'));
  expect((await read()).rates).toEqual(rates);
  await expect(read()).rejects.toThrow('answered 503');
});

test.each([
  ['too old', writeRates({ ETH: { EUR: '2000' } }, '2026-05-01T11:55:59Z'), 'too old'],
  [
    'from the future',
    writeRates({ ETH: { EUR: '2000' } }, '2026-05-01T12:02:01Z'),
    'not of our time',
  ],
  ['zero', writeRates({ ETH: { EUR: '0.00' } }), 'documented shape'],
  ['negative', writeRates({ ETH: { EUR: '-1' } }), 'documented shape'],
  ['numbers', writeRates({ ETH: { EUR: 2000 } }), 'documented shape'],
  ['not JSON', 'ETH 2000', 'documented shape'],
])('rates that are %s are refused', async (_, text, message) => {
  writeFileSync(path, text);
  await expect(createReader()()).rejects.toThrow(message);
});
