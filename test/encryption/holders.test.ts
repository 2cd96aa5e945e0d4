import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RailFacts } from '../../src/domain/payout/rules';
import { DecryptionError, Encrypted } from '../../src/encryption/encrypter';
import { createRecipientKeyRings } from '../../src/encryption/recipient-key-files';
import {
  createDetailsDecrypter,
  createRecipientEncrypters,
} from '../../src/encryption/recipient-keys';
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
  dir = mkdtempSync(join(tmpdir(), 'holders-'));
  createRecipientKeyRings(dir, now);
});
afterEach(() => rmSync(dir, { recursive: true }));

const createOwnKeyRings = (...connectors: readonly string[]) =>
  createRecipientKeyRings(
    dir,
    now,
    connectors.map((name) => `live-${name}` as const),
  );
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

test.each([
  ['a card', CARD, ['acme']],
  ['an account in the SEPA area', SEPA, ['public']],
  ['an account in the United Kingdom', UK, ['ukbank']],
  ['an account that has both numbers', BOTH, ['public', 'ukbank']],
  ['an account that no rail reaches', UNREACHABLE, []],
])('%s is decrypted only by the connectors that may pay it', async (_, facts, names) => {
  createOwnKeyRings(...CONNECTORS);
  const { live } = buildEncrypters();
  const value = await live.encrypt(PLAIN, OWNER, facts);
  const kids = live.getKid(value).split('+');
  const own = names.map((name) => `recipients.live-${name}`);
  expect(kids.map((kid) => kid.split(':')[0])).toEqual(own.length > 0 ? own : ['recipients.live']);
  expect(Encrypted.parse(value)).toBe(value);
  removeSharedKeyRing();
  expect(await findReaders(value)).toEqual(names);
  expect(await findReaders(value, 'recipient/r2')).toEqual([]);
});

test('each connector that is named for a rail can decrypt, since a rule may choose it', async () => {
  createOwnKeyRings(...CONNECTORS);
  const { live } = buildEncrypters('ukbank=sepa_instant,acme=card_payout,public=sepa_instant');
  const value = await live.encrypt(PLAIN, OWNER, SEPA);
  removeSharedKeyRing();
  expect(await findReaders(value)).toEqual(['public', 'ukbank']);
});

test('no connector decrypts a value for several connectors after a change in it', async () => {
  createOwnKeyRings(...CONNECTORS);
  const { live } = buildEncrypters();
  const jwe = JSON.parse(await live.encrypt(PLAIN, OWNER, BOTH));
  const other = JSON.parse(await live.encrypt(PLAIN, 'recipient/r2', BOTH));
  const direct = jwe.recipients.map((each: { header: object }) => ({
    ...each,
    header: { ...each.header, alg: 'dir' },
  }));
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

test('recipients of the sandbox are encrypted for its bank, not for live connectors', async () => {
  createOwnKeyRings(...CONNECTORS);
  const { sandbox } = buildEncrypters();
  const value = await sandbox.encrypt(PLAIN, OWNER);
  expect(sandbox.getKid(value)).toMatch(/^recipients\.sandbox:/);
  const decrypter = createDetailsDecrypter(dir, 'sandbox', 'sandbox');
  expect(await decrypter.decrypt(value, OWNER)).toBe(PLAIN);
  expect(await findReaders(value)).toEqual([]);
});
