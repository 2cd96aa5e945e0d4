import { randomBytes } from 'node:crypto';
import { createSignatureCheck, UnreadableKey } from '../../../src/callbacks/verify';
import { createEncrypter } from '../../../src/encryption/encrypter';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../../../src/store/keys';
import { signPayload } from '../../../src/webhooks/attempt';

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
  const decrypt = jest.fn(encrypter.decrypt);
  const current = async (name: string) => keys.filter(({ connector }) => connector === name);
  const check = createSignatureCheck({
    now: () => new Date(AT * 1_000 + 999),
    encrypter: { decrypt },
    stores: { connectorKeys: { current } },
  });
  return {
    keys,
    decrypt,
    verify: async (header: string | undefined, more: { connector?: string; body?: string } = {}) =>
      (await check({ connector: 'acme', header, body: BODY, ...more }))?.key_id,
  };
}

const signed = (secret: string, at = AT) => signPayload(secret, BODY, at);
const ONE = signed('cnsec_one');

test('each key of the connector may sign until it is removed, and its secret is decrypted once', async () => {
  const { verify, keys, decrypt } = await openCheck();
  for (const [id, secret] of [...Object.entries(SECRETS), ...Object.entries(SECRETS)]) {
    expect(await verify(signed(secret))).toBe(id);
  }
  expect(decrypt).toHaveBeenCalledTimes(2);
  keys.shift();
  expect(await verify(ONE)).toBeUndefined();
});

test('a signature is by a key of the connector, for its body, and at most 300 seconds old', async () => {
  const { verify } = await openCheck();
  for (const at of [AT, AT - 300]) expect(await verify(signed('cnsec_one', at))).toBe('cnkey_1');
  for (const refused of [
    ...[signed('cnsec_one', AT - 301), signed('cnsec_one', AT + 301)],
    ...[signed('cnsec_three'), undefined],
  ]) {
    expect(await verify(refused)).toBeUndefined();
  }
  for (const other of [{ body: `${BODY} ` }, { connector: 'polbank' }]) {
    expect(await verify(ONE, other)).toBeUndefined();
  }
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
