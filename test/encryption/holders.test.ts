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
  ...{ type: 'card', iban_in_sepa: null },
  has: ['card_number', 'date_of_birth', ...ADDRESS],
};
const SEPA: RailFacts = { type: 'bank_account', has: ['iban', ...ADDRESS], iban_in_sepa: true };
const UK: RailFacts = {
  ...{ type: 'bank_account', iban_in_sepa: null },
  has: ['sort_code', 'account_number'],
};
const BOTH: RailFacts = { ...SEPA, has: ['iban', ...ADDRESS, 'sort_code', 'account_number'] };
const NOBODY: RailFacts = { ...SEPA, iban_in_sepa: false };

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

const createOwnRings = (...connectors: readonly string[]) =>
  createRecipientKeyRings(
    dir,
    now,
    connectors.map((name) => `live-${name}` as const),
  );
const encrypters = (routes = ROUTES) => {
  const { listConnectors } = createConnectors('sandbox', routes);
  return createRecipientEncrypters(dir, (rail) => listConnectors(rail, true));
};
/** Connectors that decrypt a value for its owner. */
async function readersOf(sealed: Encrypted, owner = OWNER): Promise<string[]> {
  const readers = await Promise.all(
    CONNECTORS.map(async (connector) => {
      const decrypter = createDetailsDecrypter(dir, 'live', connector);
      const text = await decrypter.decrypt(sealed, owner).catch((error) => {
        expect(error).toBeInstanceOf(DecryptionError);
        return undefined;
      });
      return text === PLAIN ? [connector] : [];
    }),
  );
  return readers.flat();
}
const removeShared = () => rmSync(join(dir, 'recipients.live.json'));

test.each([
  ['a card', CARD, ['acme']],
  ['an account in the SEPA area', SEPA, ['public']],
  ['an account in the United Kingdom', UK, ['ukbank']],
  ['an account that has both numbers', BOTH, ['public', 'ukbank']],
  ['an account that no rail reaches', NOBODY, []],
])(
  '%s is decrypted by the connectors that may pay it, and by no other',
  async (_, facts, names) => {
    createOwnRings(...CONNECTORS);
    const { live } = encrypters();
    const sealed = await live.encrypt(PLAIN, OWNER, facts);
    const kids = live.getKid(sealed).split('+');
    const expected =
      names.length === 0 ? ['recipients.live'] : names.map((n) => `recipients.live-${n}`);
    expect(kids.map((kid) => kid.split(':')[0])).toEqual(expected);
    expect(Encrypted.parse(sealed)).toBe(sealed);
    removeShared();
    expect(await readersOf(sealed)).toEqual(names);
    expect(await readersOf(sealed, 'recipient/r2')).toEqual([]);
  },
);

test('each connector that is named for a rail decrypts, since a rule may choose it', async () => {
  createOwnRings(...CONNECTORS);
  const { live } = encrypters('ukbank=sepa_instant,acme=card_payout,public=sepa_instant');
  const sealed = await live.encrypt(PLAIN, OWNER, SEPA);
  removeShared();
  expect(await readersOf(sealed)).toEqual(['public', 'ukbank']);
});

test('what is changed in a value for several connectors, none of them decrypts', async () => {
  createOwnRings(...CONNECTORS);
  const sealed = await encrypters().live.encrypt(PLAIN, OWNER, BOTH);
  const jwe = JSON.parse(sealed);
  const other = JSON.parse(await encrypters().live.encrypt(PLAIN, 'recipient/r2', BOTH));
  for (const part of ['protected', 'iv', 'ciphertext', 'tag', 'recipients']) {
    const changed = Encrypted.parse(JSON.stringify({ ...jwe, [part]: other[part] }));
    expect(await readersOf(changed)).toEqual([]);
  }
  const direct = jwe.recipients.map((each: { header: object }) => ({
    ...each,
    header: { ...each.header, alg: 'dir' },
  }));
  const forged = Encrypted.parse(JSON.stringify({ ...jwe, recipients: direct }));
  expect(await readersOf(forged)).toEqual([]);
});

test('connectors without a key ring of their own share one, until they get it', async () => {
  const { live } = encrypters();
  const before = await live.encrypt(PLAIN, OWNER, CARD);
  const shared = createDetailsDecrypter(dir, 'live', 'acme');
  expect(await shared.decrypt(before, OWNER)).toBe(PLAIN);

  createOwnRings('acme');
  const after = await live.encrypt(PLAIN, OWNER, CARD);
  expect(live.getKid(after)).toMatch(/^recipients\.live-acme:/);
  const sepa = await live.encrypt(PLAIN, OWNER, SEPA);
  expect(live.getKid(sepa)).toMatch(/^recipients\.live:/);
  // It follows its own file, and still decrypts what was encrypted before.
  for (const sealed of [before, after]) expect(await shared.decrypt(sealed, OWNER)).toBe(PLAIN);
  removeShared();
  expect(await createDetailsDecrypter(dir, 'live', 'acme').decrypt(after, OWNER)).toBe(PLAIN);
  expect(() => createDetailsDecrypter(dir, 'live', 'polbank')).toThrow(
    'live-polbank.json is missing',
  );
});

test('recipients of the sandbox are encrypted for its bank, whatever live connectors there are', async () => {
  createOwnRings(...CONNECTORS);
  const { sandbox } = encrypters();
  const sealed = await sandbox.encrypt(PLAIN, OWNER);
  expect(sandbox.getKid(sealed)).toMatch(/^recipients\.sandbox:/);
  expect(await createDetailsDecrypter(dir, 'sandbox', 'sandbox').decrypt(sealed, OWNER)).toBe(
    PLAIN,
  );
  expect(await readersOf(sealed)).toEqual([]);
});
