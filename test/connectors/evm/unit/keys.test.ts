import * as Keystore from 'ox/Keystore';
import { generatePrivateKey, mnemonicToAccount, privateKeyToAddress } from 'viem/accounts';
import { assertPrivate, readEvmConfig } from '../../../../connectors/evm/config';
import { readExtendedKey } from '../../../../connectors/evm/extended-key';
import { openKeystore } from '../../../../connectors/evm/keystore';
import { ACCOUNT, WORDS } from '../words';

describe('the extended key', () => {
  it.each([0, 1, 7, 2_147_483_647])('gives the address of index %i as a wallet does', (index) => {
    const { addressAt } = readExtendedKey(`${ACCOUNT.publicExtendedKey}\n`);
    const path = `m/44'/60'/0'/0/${index}` as const;
    expect(addressAt(index)).toBe(mnemonicToAccount(WORDS, { path }).address);
  });

  it('must be public, and is not quoted where it is refused', () => {
    const secret = ACCOUNT.privateExtendedKey;
    expect(() => readExtendedKey(secret)).toThrow(/private one/);
    const broken = `${secret.slice(0, -4)}1111`;
    expect(() => readExtendedKey(broken)).toThrow(/^The extended key is not one of BIP-32/);
  });

  it('has a name from which it cannot be told', () => {
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

  it('of either kind opens with its password', async () => {
    for (const file of files()) {
      expect((await openKeystore(file, 'right')).address).toBe(privateKeyToAddress(key));
    }
  });

  it('is refused with another password, and where it is none', async () => {
    for (const file of files()) {
      await expect(openKeystore(file, 'wrong')).rejects.toThrow('does not open');
    }
    await expect(openKeystore('{}', 'right')).rejects.toThrow('no JSON of version 3');
  });
});

describe('the environment', () => {
  const env = {
    EVM_RPC_URL_FILE: '/run/secrets/rpc',
    EVM_CHAIN_ID: '1',
    EVM_XPUB_FILE: '/run/secrets/xpub',
    EVM_USDC_ADDRESS: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    EVM_KEYSTORE_FILE: '/run/secrets/keystore.json',
    EVM_KEYSTORE_PASSWORD_FILE: '/run/secrets/password',
    EVM_SCREENING_FILE: '/etc/evm/list.txt',
    EVM_RATES: 'https://rates.example.com/',
    CONNECTOR_KEY_FILE: '/run/secrets/evm-key.json',
    MONGODB_URI: 'mongodb://localhost',
  };

  it('has a default for all that is no secret and no choice of a chain', () => {
    expect(readEvmConfig(env)).toMatchObject({
      EVM_CONNECTOR: 'evm',
      EVM_CONFIRMATIONS: 12,
      EVM_FEE_MAX_GWEI: '200',
    });
  });

  it.each([
    [{}, 'https://node.example/v1/secret', []],
    [{}, 'http://127.0.0.1:8545', []],
    [{}, 'http://node.example/v1/secret', ['EVM_RPC_URL_FILE']],
    [{ EVM_RATES: 'http://rates.example/' }, 'http://localhost', ['EVM_RATES']],
    [{ EVM_RATES: '/etc/rates.json' }, 'http://[::1]:8545', []],
    [{ ALLOW_CLEAR_TEXT: 'yes' }, 'http://node.example/', []],
  ])('%j lets a node at %s be asked, but for %j', (change, node, refused) => {
    let said = '';
    try {
      assertPrivate(readEvmConfig({ ...env, ...change }), node);
    } catch (error) {
      said = String(error);
    }
    expect(said).not.toContain('secret');
    expect([...said.matchAll(/\bEVM_\w+/g)].map(([name]) => name)).toEqual(refused);
  });

  it.each([
    ['absent', undefined, ''],
    ['empty', '', ''],
    ['absent in a trial', undefined, 'yes'],
  ])('is refused with a key for reports that is %s', (_what, CONNECTOR_KEY_FILE, demo) => {
    const unsigned = { ...env, CONNECTOR_KEY_FILE, ALLOW_LIVE_DEMO: demo };
    expect(() => readEvmConfig(unsigned)).toThrow(
      /^The environment is not usable\.\n {2}CONNECTOR_KEY_FILE: \S/,
    );
  });

  it('is refused where the servers of others are spoken to in clear', () => {
    const far = { ...env, TEMPORAL_ADDRESS: 'temporal.example:7233' };
    expect(() => readEvmConfig(far)).toThrow('Temporal at temporal.example');
    expect(readEvmConfig({ ...far, TEMPORAL_API_KEY: 'key' }).temporal.tls).toBe(true);
  });

  it('is refused with every fault, such as a token without its checksum', () => {
    const token = env.EVM_USDC_ADDRESS.replace('A0b8', 'a0B8');
    const empty = { ...env, EVM_START_BLOCK: '' };
    expect(() => readEvmConfig(empty)).toThrow(/EVM_START_BLOCK: must be the number of a block/);
    const bad = { ...env, EVM_CHAIN_ID: 'main', EVM_USDC_ADDRESS: token, EVM_FEE_MAX_GWEI: '-1' };
    expect(() => readEvmConfig(bad)).toThrow(/EVM_CHAIN_ID: /);
    expect(() => readEvmConfig(bad)).toThrow(
      /EVM_USDC_ADDRESS: must be an address with its checksum/,
    );
    expect(() => readEvmConfig(bad)).toThrow(/EVM_FEE_MAX_GWEI: /);
  });
});
