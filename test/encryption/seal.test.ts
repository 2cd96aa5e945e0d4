import { randomBytes } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CompactEncrypt } from 'jose';
import {
  createEncrypter,
  DecryptionError,
  Encrypted,
  type Encrypter,
} from '../../src/encryption/encrypter';
import { KeyRingError } from '../../src/encryption/followed-file';
import { followKeyFile } from '../../src/encryption/service-keys';

const PLAIN = '4111111111111111';
const OWNER = 'recipient/1';
const first = randomBytes(32);
const second = randomBytes(32);
const sealer = createEncrypter({ current: 'a', keys: { a: first } });

test('what was sealed opens for its owner, unicode and emptiness included', async () => {
  for (const plain of [PLAIN, '', 'Zoë 🦉', '{"iban":"NL91ABNA0417164300"}']) {
    expect(await sealer.decrypt(await sealer.encrypt(plain, OWNER), OWNER)).toBe(plain);
  }
});

test('the same value never looks the same twice, nor like itself', async () => {
  const sealed = await sealer.encrypt(PLAIN, OWNER);
  expect(await sealer.encrypt(PLAIN, OWNER)).not.toBe(sealed);
  expect(sealed).not.toContain(PLAIN);
  expect(sealed).not.toContain(Buffer.from(PLAIN).toString('base64url'));
});

test('moved to another owner it does not open', async () => {
  await expectClosed(await sealer.encrypt(PLAIN, OWNER), 'recipient/2');
});

test('a change in any of its five parts keeps it closed', async () => {
  const parts = (await sealer.encrypt(PLAIN, OWNER)).split('.');
  for (const [index, part] of parts.entries()) {
    const flipped = `${part.startsWith('A') ? 'B' : 'A'}${part.slice(1)}`;
    await expectClosed(Encrypted.parse(parts.with(index, flipped).join('.')));
  }
});

test('an owner written into the header by another hand is not believed', async () => {
  const [header = '', ...rest] = (await sealer.encrypt(PLAIN, 'recipient/2')).split('.');
  const fields = JSON.parse(Buffer.from(header, 'base64url').toString());
  const forged = Buffer.from(JSON.stringify({ ...fields, sub: OWNER })).toString('base64url');
  await expectClosed(Encrypted.parse([forged, ...rest].join('.')));
});

test.each([
  { alg: 'dir', enc: 'A256GCM' },
  { alg: 'A256KW', enc: 'A256GCM' },
  { alg: 'A256GCMKW', enc: 'A128GCM' },
])('$alg with $enc is refused, though the key is right', async (algorithms) => {
  const foreign = await new CompactEncrypt(Buffer.from(PLAIN))
    .setProtectedHeader({ ...algorithms, kid: 'a', sub: OWNER })
    .encrypt(first);
  await expectClosed(Encrypted.parse(foreign.replace('..', '.AAAA.')));
});

test('after a rotation, old values open and new ones take the new key', async () => {
  const old = await sealer.encrypt(PLAIN, OWNER);
  const rotated = createEncrypter({ current: 'b', keys: { a: first, b: second } });
  const renewed = await rotated.encrypt(PLAIN, OWNER);
  expect(await rotated.decrypt(old, OWNER)).toBe(PLAIN);
  expect([rotated.getKid(old), rotated.getKid(renewed)]).toEqual(['a', 'b']);
  await expectClosed(renewed);
});

test('another key under the same name does not open it', async () => {
  const stranger = createEncrypter({ current: 'a', keys: { a: second } });
  const sealed = await sealer.encrypt(PLAIN, OWNER);
  await expect(stranger.decrypt(sealed, OWNER)).rejects.toThrow(DecryptionError);
});

test('text that was never sealed is refused', async () => {
  expect(Encrypted.safeParse(PLAIN).success).toBe(false);
  await expectClosed(Encrypted.parse('e30.e30.e30.e30.e30'));
  await expectClosed(Encrypted.parse('AAAA.AAAA.AAAA.AAAA.AAAA'));
  expect(() => sealer.getKid(Encrypted.parse('AAAA.AAAA.AAAA.AAAA.AAAA'))).toThrow(DecryptionError);
});

test('a ring without its current key, or with a short one, is refused at once', () => {
  expect(() => createEncrypter({ current: 'b', keys: { a: first } })).toThrow(
    'no encryption key "b"',
  );
  expect(() => createEncrypter({ current: 'toString', keys: { a: first } })).toThrow(
    'no encryption key',
  );
  const short = { current: 'a', keys: { a: first, old: randomBytes(16) } };
  expect(() => createEncrypter(short)).toThrow('"old" is not 32 bytes');
});

describe('a sealer that follows its key file', () => {
  let folder: string;
  let path: string;
  let now: number;
  let following: Encrypter;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ring-test-'));
    path = join(folder, 'keys.json');
    now = 0;
    put('a', { a: first });
    following = createEncrypter(followKeyFile(path, () => now).seal);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Replaced in one step, as the command line does it. */
  function put(current: string, keys: Record<string, Buffer>): void {
    const text = Object.entries(keys).map(([kid, key]) => [kid, key.toString('base64url')]);
    const seal = { current, keys: Object.fromEntries(text) };
    const other = randomBytes(32).toString('base64url');
    writeFileSync(`${path}.next`, JSON.stringify({ pay_token: other, fingerprint: other, seal }));
    renameSync(`${path}.next`, path);
  }
  const sealsWith = async () => following.getKid(await following.encrypt(PLAIN, OWNER));

  test.each([
    ['empty', Buffer.alloc(0)],
    ['of one byte', Buffer.from([7])],
    ['of 31 bytes', randomBytes(31)],
    ['of 33 bytes', randomBytes(33)],
    ['zeros', Buffer.alloc(32)],
    ['one byte again and again', Buffer.alloc(32, 7)],
    ['a phrase', Buffer.from('correct horse battery staple 123')],
    ['a phrase in another script', Buffer.from('пароль для ключа')],
    [
      'a word again and again',
      Buffer.from('changemechangemechangemechangemechangemechQ', 'base64url'),
    ],
    [
      'a phrase in one case',
      Buffer.from('correct_horse_battery_staple_and_some_more_', 'base64url'),
    ],
    ['steps of one', Buffer.from(Array.from({ length: 32 }, (_, index) => 250 + index))],
    ['a pattern of 16', Buffer.concat([first.subarray(0, 16), first.subarray(0, 16)])],
  ])('a key that is %s is refused, whatever it is for, and not told', (_, weak) => {
    const good = randomBytes(32).toString('base64url');
    const text = weak.toString('base64url');
    const seal = { current: 'a', keys: { a: good } };
    const keys = { pay_token: good, fingerprint: good, seal };
    const weakened = [
      { ...keys, pay_token: text },
      { ...keys, fingerprint: text },
      { ...keys, seal: { ...seal, keys: { a: text } } },
    ];
    for (const each of weakened) {
      writeFileSync(path, JSON.stringify(each));
      let told = '';
      try {
        followKeyFile(path);
      } catch (error) {
        told = String(error);
      }
      expect(told).toMatch(/must be 32 bytes in base64url|must be random bytes/);
      if (text !== '') expect(told).not.toContain(text);
    }
  });

  test('seals with the new current key a second after it was put there, not before', async () => {
    put('b', { a: first, b: second });
    now = 999;
    expect(await sealsWith()).toBe('a');
    now = 1_000;
    expect(await sealsWith()).toBe('b');
    put('a', { a: first, b: second });
    now = 1_999;
    expect(await sealsWith()).toBe('b');
    now = 2_000;
    expect(await sealsWith()).toBe('a');
  });

  test('opens at once what a newer key sealed', async () => {
    const newer = createEncrypter({ current: 'b', keys: { b: second } });
    const sealed = await newer.encrypt(PLAIN, OWNER);
    await expect(following.decrypt(sealed, OWNER)).rejects.toThrow(DecryptionError);
    put('b', { a: first, b: second });
    expect(await following.decrypt(sealed, OWNER)).toBe(PLAIN);
    expect(await following.decrypt(await sealer.encrypt(PLAIN, OWNER), OWNER)).toBe(PLAIN);
  });

  test.each([
    ['is gone', () => rmSync(path)],
    ['is half written', () => writeFileSync(path, '{"pay_token": "c2VjcmV0')],
    ['lacks its current key', () => put('b', { a: first })],
    ['holds a key that is too short', () => put('b', { a: first, b: randomBytes(8) })],
  ])('while the file %s it seals nothing, opens what it can, and recovers', async (_, spoil) => {
    const old = await following.encrypt(PLAIN, OWNER);
    spoil();
    now = 1_000;
    const error: unknown = await following.encrypt(PLAIN, OWNER).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(KeyRingError);
    expect(String(error)).not.toContain('c2VjcmV0');
    expect(await following.decrypt(old, OWNER)).toBe(PLAIN);
    const newer = createEncrypter({ current: 'c', keys: { c: second } });
    await expect(following.decrypt(await newer.encrypt(PLAIN, OWNER), OWNER)).rejects.toThrow(
      DecryptionError,
    );
    put('c', { a: first, c: second });
    expect(await sealsWith()).toBe('c');
  });

  test('a file that is no key file is refused at the start, without a word of it', () => {
    writeFileSync(path, 'c2VjcmV0 as it stands');
    let refusal = '';
    try {
      followKeyFile(path);
    } catch (error) {
      refusal = String(error);
    }
    expect(refusal).not.toBe('');
    expect(refusal).not.toContain('c2VjcmV0');
    rmSync(path);
    expect(() => followKeyFile(path)).toThrow('ENOENT');
  });
});

/** Expects the error that every reason gives, telling nothing. */
async function expectClosed(sealed: Encrypted, owner = OWNER): Promise<void> {
  const error: unknown = await sealer.decrypt(sealed, owner).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(DecryptionError);
  expect(error).toMatchObject({ message: 'The encrypted value could not be decrypted.' });
  expect(error).not.toHaveProperty('cause');
}
