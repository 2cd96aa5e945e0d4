import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  createDetailsDecrypter,
  createRecipientEncrypters,
} from '../../src/encryption/recipient-keys';
import { createConnectors, SANDBOX_CONNECTOR } from '../../src/routing';
import {
  continueRotation,
  createPairs,
  type KeyDeps,
  retireKey,
  rotateKeys,
  showKeys,
} from '../../src/service/key-rotation/rotate';
import { buildRecipient, recipientOwner } from '../../src/store/recipients';
import { DETAILS, useKeysSetting } from './keys-setting';

const setting = useKeysSetting();

const ROUTES = 'acme=card_payout,polbank=sepa_credit_transfer|sepa_instant';
const ADDRESS = ['address_line1', 'city', 'postal_code'] as const;
const PLAIN = { scheme: null, card_expires: null, iban_in_sepa: null, last4: '0000' };
const CARD = {
  ...{ ...PLAIN, type: 'card' as const },
  has: ['card_number' as const, 'date_of_birth' as const, ...ADDRESS],
};
const SEPA = {
  ...{ ...PLAIN, type: 'bank_account' as const, iban_in_sepa: true },
  has: ['iban' as const, ...ADDRESS],
};

const routed = (routes: string): KeyDeps => ({
  ...setting.deps,
  connectors: createConnectors(SANDBOX_CONNECTOR, routes),
});

/** Recipient of live, as an API with these routes stores it, or has only accepted it. */
async function addRecipient(
  { connectors, keysDir, stores }: KeyDeps,
  facts: typeof CARD | typeof SEPA,
  isWritten = true,
): Promise<string> {
  const id = randomUUID();
  const { live } = createRecipientEncrypters(keysDir, (rail) =>
    connectors.listConnectors(rail, true),
  );
  const sealed = await live.encrypt(DETAILS, recipientOwner(id), facts);
  const request = { recipient: { ...facts, sealed, kid: live.getKid(sealed) } };
  const owner = { account_id: 'acct_live', livemode: true, request_id: 'req' };
  if (isWritten) {
    await stores.recipients.insert(buildRecipient({ id, ...owner }, request, new Date()));
    return id;
  }
  const use = { operation: 'createRecipient', key: id, fingerprint: 'f' };
  await stores.idempotency.reserveKey({ ...owner, ...use, resource_id: id, request }, new Date());
  return id;
}

/** Connectors whose private file decrypts the recipient, each without that of the others. */
async function readersOf(id: string): Promise<string[]> {
  const sealed = (await setting.stores.recipients.get(id))?.sealed;
  if (!sealed) throw new Error(`no recipient ${id}`);
  const readers = await Promise.all(
    ['acme', 'polbank'].map(async (connector) => {
      const decrypter = createDetailsDecrypter(setting.keysDir, 'live', connector);
      const text = await decrypter.decrypt(sealed, recipientOwner(id)).catch(() => undefined);
      return text === DETAILS ? [connector] : [];
    }),
  );
  return readers.flat();
}

const ringOf = async (id: string) =>
  (await setting.stores.recipients.get(id))?.kid?.split('+').map((kid) => kid.split(':')[0]);

test('each connector gets a key ring, and recipients are re-encrypted for those who may pay them', async () => {
  const deps = routed(ROUTES);
  const [card, sepa] = [await addRecipient(deps, CARD), await addRecipient(deps, SEPA)];
  const accepted = await addRecipient(deps, CARD, false);
  expect(await ringOf(card)).toEqual(['recipients.live']);

  const written = await createPairs(deps);
  expect(written.map((path) => basename(path))).toEqual([
    ...['recipients.live-acme.json', 'recipients.live-acme.public.json'],
    ...['recipients.live-polbank.json', 'recipients.live-polbank.public.json'],
  ]);
  expect(await createPairs(deps)).toEqual([]);
  // The shared file still decrypts for both.
  expect(await readersOf(card)).toEqual(['acme', 'polbank']);

  expect(await continueRotation(deps)).toMatchObject({ resealed: 3, remaining: 0 });
  expect(await continueRotation(deps)).toMatchObject({ resealed: 0, remaining: 0 });
  expect([await readersOf(card), await readersOf(sepa)]).toEqual([['acme'], ['polbank']]);
  expect(await ringOf(accepted)).toEqual(['recipients.live-acme']);
  const { recipients, keys } = await showKeys(deps);
  expect(Object.keys(recipients)).toEqual(['sandbox', 'live', 'live-acme', 'live-polbank']);
  const acme = keys.find(({ kid }) => kid === recipients['live-acme']);
  expect(acme).toMatchObject({ recipients: 2, claims: 0 });
});

test('a connector’s key is rotated and retired alone', async () => {
  const deps = routed(ROUTES);
  const name = 'recipients.live-polbank';
  const first = (await showKeys(deps)).recipients['live-polbank'] ?? '';
  const sepa = await addRecipient(deps, SEPA);
  await expect(retireKey(deps, first)).rejects.toMatchObject({ code: 'sealing_key_current' });
  const { kid, remaining } = await rotateKeys(deps, false, name);
  expect(remaining).toBe(0);
  expect((await setting.stores.recipients.get(sepa))?.kid).toBe(kid);
  expect(await retireKey(deps, first)).toEqual([kid]);
  expect(await readersOf(sepa)).toEqual(['polbank']);
});

test('a rail that another bank serves as well takes its recipients along', async () => {
  const both = routed('acme=card_payout|sepa_instant,polbank=sepa_credit_transfer');
  const sepa = await addRecipient(routed(ROUTES), SEPA);
  expect(await readersOf(sepa)).toEqual(['polbank']);
  expect(await continueRotation(both)).toMatchObject({ remaining: 0 });
  expect(await readersOf(sepa)).toEqual(['acme', 'polbank']);
  const kids = (await setting.stores.recipients.get(sepa))?.kid?.split('+') ?? [];
  for (const kid of kids) {
    const counts = (await showKeys(both)).keys.find((key) => key.kid === kid);
    expect(counts?.recipients).toBeGreaterThan(0);
  }
  expect(await continueRotation(routed(ROUTES))).toMatchObject({ remaining: 0 });
  expect(await readersOf(sepa)).toEqual(['polbank']);
});

test('without the routes of the API nothing is re-encrypted', async () => {
  const id = await addRecipient(routed(ROUTES), CARD);
  const refused = { code: 'keys_dir_invalid', message: expect.stringContaining('LIVE_CONNECTORS') };
  await expect(continueRotation(routed(''))).rejects.toMatchObject(refused);
  await expect(rotateKeys(routed(''), true)).rejects.toMatchObject(refused);
  expect(await setting.refusal('keys', 'show')).toMatchObject(refused);
  const unknown = rotateKeys(routed(ROUTES), true, 'recipients.live-nobody');
  await expect(unknown).rejects.toMatchObject({ code: 'keys_dir_invalid' });
  expect(await readersOf(id)).toEqual(['acme']);
});

test('a connector that has only its own file decrypts nothing of another', async () => {
  const deps = routed(ROUTES);
  const [card, sepa] = [await addRecipient(deps, CARD), await addRecipient(deps, SEPA)];
  rmSync(join(deps.keysDir, 'recipients.live.json'));
  expect([await readersOf(card), await readersOf(sepa)]).toEqual([['acme'], ['polbank']]);
});
