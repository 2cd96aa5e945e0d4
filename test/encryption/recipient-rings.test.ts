import { createECDH } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeProtectedHeader } from 'jose';
import type { RailFacts } from '../../src/domain/payout/rules';
import { createEncrypter, DecryptionError } from '../../src/encryption/encrypter';
import { warnOfReaders } from '../../src/encryption/file-mode';
import {
  addPair,
  createRecipientKeyRings,
  removePair,
} from '../../src/encryption/recipient-key-files';
import {
  createDetailsDecrypter,
  createRecipientEncrypters,
} from '../../src/encryption/recipient-keys';
import { followPairs, keyRingPath } from '../../src/encryption/recipient-pairs';

const OWNER = 'recipient/r1';
const PLAIN = '{"iban":"NL91"}';
const FACTS: RailFacts = { type: 'bank_account', has: [], iban_in_sepa: null };
const now = new Date('2026-03-01T00:00:00Z');
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'recipient-rings-'));
  createRecipientKeyRings(dir, now);
});
afterEach(() => rmSync(dir, { recursive: true }));

const buildDecrypter = (environment: 'sandbox' | 'live') =>
  createDetailsDecrypter(dir, environment);
const expectRefused = (text: Promise<string>) => expect(text).rejects.toThrow(DecryptionError);

test.each([
  ['sandbox', 'live'],
  ['live', 'sandbox'],
] as const)(
  'only the private part of %s decrypts what its public part encrypts',
  async (own, other) => {
    const value = await createRecipientEncrypters(dir)[own].encrypt(PLAIN, OWNER, FACTS);
    expect(decodeProtectedHeader(value)).toMatchObject({
      alg: 'ECDH-ES+A256KW',
      kid: expect.stringMatching(new RegExp(`^recipients[.]${own}:k20260301-`)),
    });
    expect(await buildDecrypter(own).decrypt(value, OWNER)).toBe(PLAIN);
    await expectRefused(buildDecrypter(other).decrypt(value, OWNER));
    await expectRefused(buildDecrypter(own).decrypt(value, 'recipient/r2'));
    const publicKeys = createEncrypter(followPairs(dir, own, 'public'));
    await expectRefused(publicKeys.decrypt(value, OWNER));
  },
);

test.each(['sandbox', 'live'] as const)(
  'the public file of %s holds no private part, and only it may be read by others',
  (environment) => {
    for (const [part, mode] of [
      ['private', 0o600],
      ['public', 0o644],
    ] as const) {
      const path = keyRingPath(dir, environment, part);
      expect(statSync(path).mode & 0o777).toBe(mode);
      expect(readFileSync(path, 'utf8').includes('"d"')).toBe(part === 'private');
    }
  },
);

test('existing key rings stay; a public part that is missing or old is written again', () => {
  const paths = [keyRingPath(dir, 'live', 'private'), keyRingPath(dir, 'live', 'public')] as const;
  const read = () => paths.map((path) => readFileSync(path, 'utf8'));
  const before = read();
  expect(createRecipientKeyRings(dir, now)).toEqual([]);
  writeFileSync(paths[1], readFileSync(keyRingPath(dir, 'sandbox', 'public')));
  expect(createRecipientKeyRings(dir, now)).toEqual([paths[1]]);
  expect(read()).toEqual(before);
});

test('a rotation takes effect at once, and the earlier pair decrypts until it is removed', async () => {
  const decrypter = buildDecrypter('live');
  const before = await createRecipientEncrypters(dir).live.encrypt(PLAIN, OWNER, FACTS);
  const kid = addPair(dir, 'live', now);
  const { live } = createRecipientEncrypters(dir);
  const after = await live.encrypt(PLAIN, OWNER, FACTS);
  expect(live.getKid(after)).toBe(kid);
  for (const value of [before, after]) expect(await decrypter.decrypt(value, OWNER)).toBe(PLAIN);
  expect(() => removePair(dir, 'live', kid)).toThrow('is the current key');
  removePair(dir, 'live', live.getKid(before));
  await expectRefused(buildDecrypter('live').decrypt(before, OWNER));
  expect(await buildDecrypter('live').decrypt(after, OWNER)).toBe(PLAIN);
});

test('a key ring that is foreign, broken, weak, readable or missing is refused by name', () => {
  const own = keyRingPath(dir, 'sandbox', 'private');
  const text = readFileSync(own, 'utf8');
  const expectFault = (content: string, fault: string | RegExp) => {
    writeFileSync(own, content);
    expect(() => buildDecrypter('sandbox')).toThrow(fault);
  };
  expectFault(text.replaceAll('recipients.sandbox:', 'recipients.live:'), 'foreign name');
  const broken = /^The private part of recipients.sandbox:\S+ is no key/;
  expectFault(text.replace(/"d": "[^"]+"/, '"d": "AA"'), broken);
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(Buffer.from('correct horse battery staple 123'));
  const point = pair.getPublicKey();
  const [x, y] = [point.toString('base64url', 1, 33), point.toString('base64url', 33)];
  const jwk = { kty: 'EC', crv: 'P-256', d: pair.getPrivateKey('base64url'), x, y };
  const kid = 'recipients.sandbox:weak';
  const weak = JSON.stringify({ current: kid, keys: { [kid]: jwk } });
  expectFault(weak, `The private part of ${kid} must be random bytes`);
  chmodSync(own, 0o644);
  expectFault(text, 'Everybody may read');
  chmodSync(own, 0o440);
  expect(() => buildDecrypter('sandbox')).not.toThrow();
  rmSync(keyRingPath(dir, 'live', 'public'));
  expect(() => createRecipientEncrypters(dir)).toThrow('live.public.json is missing (KEYS_DIR)');
});

test('a key file that others may read is logged as a warning', () => {
  const path = join(dir, 'keys.json');
  writeFileSync(path, '{}');
  const warnings: object[] = [];
  for (const mode of [0o600, 0o640, 0o644]) {
    chmodSync(path, mode);
    warnOfReaders(path, { warn: (facts) => warnings.push(facts) });
  }
  expect(warnings).toEqual([
    { path, readers: 'its group' },
    { path, readers: 'everybody' },
  ]);
});
