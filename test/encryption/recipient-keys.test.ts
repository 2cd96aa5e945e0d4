import { createECDH } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeProtectedHeader } from 'jose';
import type { RailFacts } from '../../src/domain/payout/rules';
import { createEncrypter, DecryptionError, Encrypted } from '../../src/encryption/encrypter';
import {
  createDetailsDecrypter,
  createRecipientEncrypters,
} from '../../src/encryption/recipient-keys';
import {
  addPair,
  createRecipientKeyRings,
  followPairs,
  keyRingPath,
  removePair,
} from '../../src/encryption/recipient-pairs';
import { createConnectors } from '../../src/routing';

const OWNER = 'recipient/r1';
const PLAIN = '{"iban":"NL91"}';
const ADDRESS = ['address_line1', 'city', 'postal_code'] as const;
const CARD: RailFacts = {
  type: 'card',
  has: ['card_number', 'date_of_birth', ...ADDRESS],
  iban_in_sepa: null,
};
const SEPA: RailFacts = { type: 'bank_account', has: ['iban', ...ADDRESS], iban_in_sepa: true };
const UK: RailFacts = { ...SEPA, has: ['sort_code', 'account_number'], iban_in_sepa: null };
const BOTH: RailFacts = { ...SEPA, has: ['iban', ...ADDRESS, 'sort_code', 'account_number'] };
const UNREACHABLE: RailFacts = { ...SEPA, iban_in_sepa: false };

const ROUTES =
  'acme=card_payout,public=sepa_credit_transfer|sepa_instant,ukbank=faster_payments,old=visa';
const CONNECTORS = ['acme', 'public', 'ukbank'] as const;
const now = new Date('2026-03-01T00:00:00Z');
let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'recipient-keys-'));
  createRecipientKeyRings(dir, now);
});
afterEach(() => rmSync(dir, { recursive: true }));

const createOwnKeyRings = (...connectors: readonly string[]) => {
  const holders = connectors.map((name) => `live-${name}` as const);
  return createRecipientKeyRings(dir, now, holders);
};
const buildEncrypters = (routes = ROUTES) => {
  const { listConnectors } = createConnectors('sandbox', routes);
  return createRecipientEncrypters(dir, (rail) => listConnectors(rail, true));
};
/** Connectors that decrypt a value for its owner. */
async function findReaders(value: Encrypted, owner = OWNER): Promise<string[]> {
  const readers = CONNECTORS.map(async (connector) => {
    const decrypter = createDetailsDecrypter(dir, 'live', connector);
    const text = await decrypter.decrypt(value, owner).catch((error) => {
      expect(error).toBeInstanceOf(DecryptionError);
    });
    return text === PLAIN ? [connector] : [];
  });
  return (await Promise.all(readers)).flat();
}
const removeSharedKeyRing = () => rmSync(join(dir, 'recipients.live.json'));

/** A rule may choose each connector that is named for a rail. */
const SHARED = 'ukbank=sepa_instant,acme=card_payout,public=sepa_instant';

test.each([
  ['a card', ROUTES, CARD, ['acme']],
  ['an account in the SEPA area', ROUTES, SEPA, ['public']],
  ['an account in the SEPA area that two banks serve', SHARED, SEPA, ['public', 'ukbank']],
  ['an account in the United Kingdom', ROUTES, UK, ['ukbank']],
  ['an account that has both numbers', ROUTES, BOTH, ['public', 'ukbank']],
  ['an account that no rail reaches', ROUTES, UNREACHABLE, []],
])('%s is decrypted only by the connectors that may pay it', async (_, routes, facts, names) => {
  createOwnKeyRings(...CONNECTORS);
  const { live } = buildEncrypters(routes);
  const value = await live.encrypt(PLAIN, OWNER, facts);
  const kids = live.getKid(value).split('+');
  const own = names.map((name) => `recipients.live-${name}`);
  const keyRings = kids.map((kid) => kid.split(':')[0]).sort();
  expect(keyRings).toEqual(own.length > 0 ? own : ['recipients.live']);
  expect(Encrypted.parse(value)).toBe(value);
  removeSharedKeyRing();
  expect(await findReaders(value)).toEqual(names);
  expect(await findReaders(value, 'recipient/r2')).toEqual([]);
});

test('no connector decrypts a value for several connectors after a change in it', async () => {
  createOwnKeyRings(...CONNECTORS);
  const { live } = buildEncrypters();
  const jwe = JSON.parse(await live.encrypt(PLAIN, OWNER, BOTH));
  const other = JSON.parse(await live.encrypt(PLAIN, 'recipient/r2', BOTH));
  const direct = jwe.recipients.map(({ header, ...each }: { header: object }) => {
    return { ...each, header: { ...header, alg: 'dir' } };
  });
  const parts = ['protected', 'iv', 'ciphertext', 'tag', 'recipients'];
  const changes = [...parts.map((part) => ({ [part]: other[part] })), { recipients: direct }];
  for (const change of changes) {
    const forged = Encrypted.parse(JSON.stringify({ ...jwe, ...change }));
    expect(await findReaders(forged)).toEqual([]);
  }
});

test('connectors without a key ring of their own share one until they get it', async () => {
  const { live } = buildEncrypters();
  const before = await live.encrypt(PLAIN, OWNER, CARD);
  const shared = createDetailsDecrypter(dir, 'live', 'acme');
  expect(await shared.decrypt(before, OWNER)).toBe(PLAIN);

  createOwnKeyRings('acme');
  const after = await live.encrypt(PLAIN, OWNER, CARD);
  expect(live.getKid(after)).toMatch(/^recipients\.live-acme:/);
  const sepa = await live.encrypt(PLAIN, OWNER, SEPA);
  expect(live.getKid(sepa)).toMatch(/^recipients\.live:/);
  // It follows its own file, and still decrypts what was encrypted before.
  for (const value of [before, after]) expect(await shared.decrypt(value, OWNER)).toBe(PLAIN);
  removeSharedKeyRing();
  expect(await createDetailsDecrypter(dir, 'live', 'acme').decrypt(after, OWNER)).toBe(PLAIN);
  expect(() => createDetailsDecrypter(dir, 'live', 'polbank')).toThrow(
    'live-polbank.json is missing',
  );
});

const buildDecrypter = (environment: 'sandbox' | 'live') =>
  createDetailsDecrypter(dir, environment);
const expectRefused = (text: Promise<string>) => expect(text).rejects.toThrow(DecryptionError);

test.each([
  ['sandbox', 'live'],
  ['live', 'sandbox'],
] as const)(
  'only the private part of %s decrypts what its public part encrypts',
  async (own, other) => {
    const value = await createRecipientEncrypters(dir)[own].encrypt(PLAIN, OWNER, UNREACHABLE);
    const kid = expect.stringMatching(new RegExp(`^recipients[.]${own}:k20260301-`));
    expect(decodeProtectedHeader(value)).toMatchObject({ alg: 'ECDH-ES+A256KW', kid });
    expect(await buildDecrypter(own).decrypt(value, OWNER)).toBe(PLAIN);
    await expectRefused(buildDecrypter(other).decrypt(value, OWNER));
    await expectRefused(buildDecrypter(own).decrypt(value, 'recipient/r2'));
    const publicKeys = createEncrypter(followPairs(dir, own, 'public'));
    await expectRefused(publicKeys.decrypt(value, OWNER));
  },
);

test.each([
  ['sandbox', 'private', 0o600],
  ['sandbox', 'public', 0o644],
  ['live', 'private', 0o600],
  ['live', 'public', 0o644],
] as const)(
  'the file of %s that is %s has the mode %i, and the private part if it is private',
  (...row) => {
    const [environment, part, mode] = row;
    const path = keyRingPath(dir, environment, part);
    expect(statSync(path).mode & 0o777).toBe(mode);
    expect(readFileSync(path, 'utf8').includes('"d"')).toBe(part === 'private');
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
  const before = await createRecipientEncrypters(dir).live.encrypt(PLAIN, OWNER, UNREACHABLE);
  const kid = addPair(dir, 'live', now);
  const { live } = createRecipientEncrypters(dir);
  const after = await live.encrypt(PLAIN, OWNER, UNREACHABLE);
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
