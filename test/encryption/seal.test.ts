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
import { KeyRingError } from '../../src/encryption/key-ring';
import { followKeyFile } from '../../src/encryption/service-keys';

const PLAIN = '4111111111111111';
const OWNER = 'recipient/1';
const first = randomBytes(32);
const second = randomBytes(32);
const encrypter = createEncrypter({ current: 'a', keys: { a: first } });

/** Expects the error that every reason gives, without a detail. */
async function expectRefused(value: Encrypted, owner = OWNER, by = encrypter): Promise<void> {
  const error: unknown = await by.decrypt(value, owner).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(DecryptionError);
  expect(error).toMatchObject({ message: 'The encrypted value could not be decrypted.' });
  expect(error).not.toHaveProperty('cause');
}

describe('an encrypted value', () => {
  test.each([PLAIN, '', 'Zoë 🦉', '{"iban":"NL91ABNA0417164300"}'])(
    'is decrypted for its owner: "%s"',
    async (plain) => {
      expect(await encrypter.decrypt(await encrypter.encrypt(plain, OWNER), OWNER)).toBe(plain);
    },
  );

  test('is refused for another owner, by another key of the same name, and after a change in any part', async () => {
    const value = await encrypter.encrypt(PLAIN, OWNER);
    await expectRefused(value, 'recipient/2');
    await expectRefused(value, OWNER, createEncrypter({ current: 'a', keys: { a: second } }));
    const parts = value.split('.');
    for (const [index, part] of parts.entries()) {
      const flipped = `${part.startsWith('A') ? 'B' : 'A'}${part.slice(1)}`;
      await expectRefused(Encrypted.parse(parts.with(index, flipped).join('.')));
    }
    const [header = '', ...rest] = (await encrypter.encrypt(PLAIN, 'recipient/2')).split('.');
    const fields = JSON.parse(Buffer.from(header, 'base64url').toString());
    const forged = Buffer.from(JSON.stringify({ ...fields, sub: OWNER })).toString('base64url');
    await expectRefused(Encrypted.parse([forged, ...rest].join('.')));
  });

  test.each([
    { alg: 'dir', enc: 'A256GCM' },
    { alg: 'A256KW', enc: 'A256GCM' },
    { alg: 'A256GCMKW', enc: 'A128GCM' },
  ])('is refused with $alg and $enc, though the key is right', async (algorithms) => {
    const foreign = await new CompactEncrypt(Buffer.from(PLAIN))
      .setProtectedHeader({ ...algorithms, kid: 'a', sub: OWNER })
      .encrypt(first);
    await expectRefused(Encrypted.parse(foreign.replace('..', '.AAAA.')));
  });

  test('is decrypted with its own key after a rotation, while new ones use the new key', async () => {
    const old = await encrypter.encrypt(PLAIN, OWNER);
    const rotated = createEncrypter({ current: 'b', keys: { a: first, b: second } });
    const renewed = await rotated.encrypt(PLAIN, OWNER);
    expect(await rotated.decrypt(old, OWNER)).toBe(PLAIN);
    expect([rotated.getKid(old), rotated.getKid(renewed)]).toEqual(['a', 'b']);
    await expectRefused(renewed);
  });

  test('has the form of one', async () => {
    expect(Encrypted.safeParse(PLAIN).success).toBe(false);
    await expectRefused(Encrypted.parse('e30.e30.e30.e30.e30'));
    const made = Encrypted.parse('AAAA.AAAA.AAAA.AAAA.AAAA');
    await expectRefused(made);
    expect(() => encrypter.getKid(made)).toThrow(DecryptionError);
  });
});

test.each([
  ['b', { a: first }, 'no encryption key "b"'],
  ['toString', { a: first }, 'no encryption key'],
  ['a', { a: first, old: randomBytes(16) }, '"old" is not 32 bytes'],
])('a key ring with the current key %s is refused without it, or with a short key', (...ring) => {
  const [current, keys, fault] = ring;
  expect(() => createEncrypter({ current, keys })).toThrow(fault);
});

describe('an encrypter that follows its key file', () => {
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

  /** Replaces the file in one step, as the command line does. */
  function put(current: string, keys: Record<string, Buffer>): void {
    const text = Object.entries(keys).map(([kid, key]) => [kid, key.toString('base64url')]);
    const seal = { current, keys: Object.fromEntries(text) };
    const other = randomBytes(32).toString('base64url');
    writeFileSync(`${path}.next`, JSON.stringify({ pay_token: other, fingerprint: other, seal }));
    renameSync(`${path}.next`, path);
  }
  const getCurrentKid = async () => following.getKid(await following.encrypt(PLAIN, OWNER));

  function readRefusal(): string {
    try {
      followKeyFile(path);
    } catch (error) {
      return String(error);
    }
    throw new Error('The file was accepted.');
  }

  test.each([
    ['empty', Buffer.alloc(0)],
    ['of one byte', Buffer.from([7])],
    ['of 31 bytes', randomBytes(31)],
    ['of 33 bytes', randomBytes(33)],
    ['zeros', Buffer.alloc(32)],
    ['one byte again and again', Buffer.alloc(32, 7)],
    ['a phrase', Buffer.from('correct horse battery staple 123')],
    ['a phrase in another script', Buffer.from('пароль для ключа')],
    ['a repeated word', Buffer.from('changemechangemechangemechangemechangemechQ', 'base64url')],
    ['in one case', Buffer.from('correct_horse_battery_staple_and_some_more_', 'base64url')],
    ['steps of one', Buffer.from(Array.from({ length: 32 }, (_, index) => 250 + index))],
    ['a pattern of 16', Buffer.concat([first.subarray(0, 16), first.subarray(0, 16)])],
  ])('refuses a key that is %s, for any use, without quoting it', (_, weak) => {
    const good = randomBytes(32).toString('base64url');
    const text = weak.toString('base64url');
    const seal = { current: 'a', keys: { a: good } };
    const keys = { pay_token: good, fingerprint: good, seal };
    for (const weakened of [
      { ...keys, pay_token: text },
      { ...keys, fingerprint: text },
      { ...keys, seal: { ...seal, keys: { a: text } } },
    ]) {
      writeFileSync(path, JSON.stringify(weakened));
      const refusal = readRefusal();
      expect(refusal).toMatch(/must be 32 bytes in base64url|must be random bytes/);
      if (text !== '') expect(refusal).not.toContain(text);
    }
  });

  test('uses a new current key one second after it was written', async () => {
    const kids: string[] = [];
    for (const [current, times] of [
      ['b', [999, 1_000]],
      ['a', [1_999, 2_000]],
    ] as const) {
      put(current, { a: first, b: second });
      for (now of times) kids.push(await getCurrentKid());
    }
    expect(kids).toEqual(['a', 'b', 'b', 'a']);
  });

  test('decrypts at once what a newer key encrypted', async () => {
    const newer = createEncrypter({ current: 'b', keys: { b: second } });
    const value = await newer.encrypt(PLAIN, OWNER);
    await expectRefused(value, OWNER, following);
    put('b', { a: first, b: second });
    expect(await following.decrypt(value, OWNER)).toBe(PLAIN);
    expect(await following.decrypt(await encrypter.encrypt(PLAIN, OWNER), OWNER)).toBe(PLAIN);
  });

  test.each([
    ['is gone', () => rmSync(path)],
    ['is half written', () => writeFileSync(path, '{"pay_token": "c2VjcmV0')],
    ['lacks its current key', () => put('b', { a: first })],
    ['holds a key that is too short', () => put('b', { a: first, b: randomBytes(8) })],
  ])('encrypts nothing while the file %s, decrypts what it can, and recovers', async (_, spoil) => {
    const old = await following.encrypt(PLAIN, OWNER);
    spoil();
    now = 1_000;
    const error: unknown = await following.encrypt(PLAIN, OWNER).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(KeyRingError);
    expect(String(error)).not.toContain('c2VjcmV0');
    expect(await following.decrypt(old, OWNER)).toBe(PLAIN);
    const newer = createEncrypter({ current: 'c', keys: { c: second } });
    await expectRefused(await newer.encrypt(PLAIN, OWNER), OWNER, following);
    put('c', { a: first, c: second });
    expect(await getCurrentKid()).toBe('c');
  });

  test('refuses a file that is no key file at the start, without quoting it', () => {
    writeFileSync(path, 'c2VjcmV0 as it stands');
    expect(readRefusal()).not.toContain('c2VjcmV0');
    rmSync(path);
    expect(readRefusal()).toContain('ENOENT');
  });
});
