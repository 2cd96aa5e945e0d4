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

const opener = (environment: 'sandbox' | 'live') => createDetailsDecrypter(dir, environment);
const modeOf = (path: string) => statSync(path).mode & 0o777;
const closed = (opening: Promise<string>) => expect(opening).rejects.toThrow(DecryptionError);

test('what the public part seals, the private part of its environment opens and nothing else', async () => {
  const sealers = createRecipientEncrypters(dir);
  for (const [environment, other] of [
    ['sandbox', 'live'],
    ['live', 'sandbox'],
  ] as const) {
    const sealed = await sealers[environment].encrypt(PLAIN, OWNER, FACTS);
    expect(decodeProtectedHeader(sealed)).toMatchObject({
      alg: 'ECDH-ES+A256KW',
      kid: expect.stringMatching(new RegExp(`^recipients[.]${environment}:k20260301-`)),
    });
    expect(await opener(environment).decrypt(sealed, OWNER)).toBe(PLAIN);
    await closed(opener(other).decrypt(sealed, OWNER));
    await closed(opener(environment).decrypt(sealed, 'recipient/r2'));
    const publicKeys = createEncrypter(followPairs(dir, environment, 'public'));
    await closed(publicKeys.decrypt(sealed, OWNER));
  }
});

test('public files hold no private part, and only they may be read by others', () => {
  for (const environment of ['sandbox', 'live'] as const) {
    const [own, open] = [
      keyRingPath(dir, environment, 'private'),
      keyRingPath(dir, environment, 'public'),
    ];
    expect([modeOf(own), modeOf(open)]).toEqual([0o600, 0o644]);
    expect(readFileSync(own, 'utf8')).toContain('"d"');
    expect(readFileSync(open, 'utf8')).not.toContain('"d"');
  }
});

test('made again, what stands stays; a public part that is missing or old is written', () => {
  const [own, open] = [keyRingPath(dir, 'live', 'private'), keyRingPath(dir, 'live', 'public')];
  const before = [readFileSync(own, 'utf8'), readFileSync(open, 'utf8')];
  expect(createRecipientKeyRings(dir, now)).toEqual([]);
  writeFileSync(open, readFileSync(keyRingPath(dir, 'sandbox', 'public')));
  expect(createRecipientKeyRings(dir, now)).toEqual([open]);
  expect([readFileSync(own, 'utf8'), readFileSync(open, 'utf8')]).toEqual(before);
});

test('a rotation reaches who opens at once; the earlier pair opens its own until it is removed', async () => {
  const opening = opener('live');
  const before = await createRecipientEncrypters(dir).live.encrypt(PLAIN, OWNER, FACTS);
  const kid = addPair(dir, 'live', now);
  const sealer = createRecipientEncrypters(dir).live;
  const after = await sealer.encrypt(PLAIN, OWNER, FACTS);
  expect(sealer.getKid(after)).toBe(kid);
  for (const sealed of [before, after]) expect(await opening.decrypt(sealed, OWNER)).toBe(PLAIN);
  expect(() => removePair(dir, 'live', kid)).toThrow('is the current key');
  removePair(dir, 'live', sealer.getKid(before));
  await closed(opener('live').decrypt(before, OWNER));
  expect(await opener('live').decrypt(after, OWNER)).toBe(PLAIN);
});

test('what a process needs and lacks is told in words, and nothing of a key', () => {
  const own = keyRingPath(dir, 'sandbox', 'private');
  const text = readFileSync(own, 'utf8');
  writeFileSync(own, text.replaceAll('recipients.sandbox:', 'recipients.live:'));
  expect(() => opener('sandbox')).toThrow('foreign name');
  writeFileSync(own, text.replace(/"d": "[^"]+"/, '"d": "AA"'));
  expect(() => opener('sandbox')).toThrow(/^The private part of recipients.sandbox:\S+ is no key/);
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(Buffer.from('correct horse battery staple 123'));
  const point = pair.getPublicKey();
  const jwk = {
    ...{ kty: 'EC', crv: 'P-256', d: pair.getPrivateKey('base64url') },
    ...{ x: point.toString('base64url', 1, 33), y: point.toString('base64url', 33) },
  };
  const kid = 'recipients.sandbox:weak';
  writeFileSync(own, JSON.stringify({ current: kid, keys: { [kid]: jwk } }));
  expect(() => opener('sandbox')).toThrow(`The private part of ${kid} must be random bytes`);
  writeFileSync(own, text);
  chmodSync(own, 0o644);
  expect(() => opener('sandbox')).toThrow('Everybody may read');
  chmodSync(own, 0o440);
  expect(() => opener('sandbox')).not.toThrow();
  rmSync(keyRingPath(dir, 'live', 'public'));
  expect(() => createRecipientEncrypters(dir)).toThrow('live.public.json is missing (KEYS_DIR)');
});

test('a key file that others may read is warned of', () => {
  const path = join(dir, 'keys.json');
  writeFileSync(path, '{}');
  const told: object[] = [];
  for (const mode of [0o600, 0o640, 0o644]) {
    chmodSync(path, mode);
    warnOfReaders(path, { warn: (facts) => told.push(facts) });
  }
  expect(told).toEqual([
    { path, readers: 'its group' },
    { path, readers: 'everybody' },
  ]);
});
