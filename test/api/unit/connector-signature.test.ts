import { randomBytes } from 'node:crypto';
import { createSignatureCheck, UnreadableKey } from '../../../src/callbacks/verify';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../../../src/store/keys';
import { signPayload } from '../../../src/webhooks/signature';

const openEncrypter = () => createEncrypter({ current: 'k1', keys: { k1: randomBytes(32) } });
const encrypter = openEncrypter();
const AT = 1_770_000_000;
const BODY = '{"reason":"Zoë — 10.50 €"}';
const SECRETS = { cnkey_1: 'cnsec_one', cnkey_2: 'cnsec_two' };

async function buildKey(
  _id: string,
  secret: string,
  by = encrypter,
): Promise<ConnectorKeyDocument> {
  const ciphertext = await by.encrypt(secret, connectorKeyOwner(_id));
  return { _id, connector: 'acme', ciphertext, created_at: '', revoked_at: null };
}

/** Opens a check with two keys of `acme`, which counts how often a secret is decrypted. */
async function openCheck() {
  const keys = await Promise.all(Object.entries(SECRETS).map((key) => buildKey(...key)));
  let decrypted = 0;
  const deps = {
    now: () => new Date(AT * 1_000 + 999),
    encrypter: {
      decrypt: (...args: Parameters<typeof encrypter.decrypt>) => {
        decrypted += 1;
        return encrypter.decrypt(...args);
      },
    },
    stores: {
      connectorKeys: {
        current: async (name: string) => keys.filter(({ connector }) => connector === name),
      },
    },
  };
  const check = createSignatureCheck(deps);
  return {
    keys,
    decryptedCount: () => decrypted,
    verify: async (header: string | undefined, more: { connector?: string; body?: string } = {}) =>
      (await check({ connector: 'acme', header, body: BODY, ...more }))?.key_id,
  };
}

const signed = (secret: string, at = AT) => signPayload(secret, BODY, at);
const ONE = signed('cnsec_one');

test('each key of the connector may sign, and its secret is decrypted once', async () => {
  const { verify, decryptedCount } = await openCheck();
  for (const [id, secret] of [...Object.entries(SECRETS), ...Object.entries(SECRETS)]) {
    expect(await verify(signed(secret))).toBe(id);
  }
  expect(decryptedCount()).toBe(2);
});

test('a key that is removed from the list signs no more, although its secret is cached', async () => {
  const { verify, keys } = await openCheck();
  expect(await verify(signed('cnsec_one'))).toBe('cnkey_1');
  keys.shift();
  expect(await verify(signed('cnsec_one'))).toBeUndefined();
});

test('a signature is by a key of the connector, for its body, and at most 300 seconds old', async () => {
  const { verify } = await openCheck();
  expect(await verify(ONE)).toBe('cnkey_1');
  expect(await verify(signed('cnsec_one', AT - 300))).toBe('cnkey_1');
  expect(await verify(signed('cnsec_one', AT - 301))).toBeUndefined();
  expect(await verify(signed('cnsec_one', AT + 301))).toBeUndefined();
  expect(await verify(undefined)).toBeUndefined();
  expect(await verify(signed('cnsec_three'))).toBeUndefined();
  expect(await verify(ONE, { body: `${BODY} ` })).toBeUndefined();
  expect(await verify(ONE, { connector: 'polbank' })).toBeUndefined();
});

test('a secret that cannot be decrypted, or was moved to another key, is our fault', async () => {
  const { verify, keys } = await openCheck();
  keys.push(await buildKey('cnkey_3', 'cnsec_three', openEncrypter()));
  expect(await verify(ONE)).toBe('cnkey_1');
  await expect(verify(signed('cnsec_three'))).rejects.toThrow(UnreadableKey);
  const moved = await openCheck();
  const [first, second] = moved.keys;
  if (first === undefined || second === undefined) throw new Error('no keys');
  moved.keys.splice(0, 2, { ...first, ciphertext: second.ciphertext });
  await expect(moved.verify(signed('cnsec_two'))).rejects.toThrow(UnreadableKey);
});
