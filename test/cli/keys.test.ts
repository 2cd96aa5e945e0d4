import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { createEncrypter, DecryptionError, Encrypted } from '../../src/encryption/encrypter';
import { lockKeyFile } from '../../src/encryption/key-file';
import {
  createDetailsDecrypter,
  createRecipientEncrypters,
} from '../../src/encryption/recipient-keys';
import { keyRingPath } from '../../src/encryption/recipient-pairs';
import { followKeyFile, readKeys } from '../../src/encryption/service-keys';
import { createConnectors, SANDBOX_CONNECTOR } from '../../src/routing';
import {
  continueRotation,
  createPairs,
  type KeyDeps,
  retireKey,
  rotateKeys,
  showKeys,
} from '../../src/service/key-rotation/rotate';
import { endpointOwner } from '../../src/store/endpoints';
import { buildRecipient, recipientOwner } from '../../src/store/recipients';
import { eventually } from '../support/http';
import { DETAILS, killedAfter, SECRET, useKeysSetting } from './keys-setting';

const setting = useKeysSetting();

const SANDBOX = 'recipients.sandbox';
const none = {
  ...{ recipients: 0, endpoints: 0, claims: 0 },
  ...{ users: 0, connector_keys: 0, payer_keys: 0 },
};
const refused = (code: string) => expect.objectContaining({ name: 'ServiceError', code });
const countHeld = async (kid: string) =>
  (await showKeys(setting.deps)).keys.find((key) => key.kid === kid);
const decrypt = async (id: string) => {
  const recipient = await setting.stores.recipients.get(id);
  if (!recipient?.sealed) throw new Error(`no recipient ${id}`);
  const bank = createDetailsDecrypter(setting.keysDir, 'sandbox');
  return await bank.decrypt(recipient.sealed, recipientOwner(id));
};
const readPayer = async (id: string) => (await setting.stores.payments.get(id))?.customer.sealed;

test('a rotation creates a key, waits, and encrypts all values again with it', async () => {
  const { deps, stores, createSecrets, lines, waits, keysFile } = setting;
  const before = readKeys(keysFile);
  const old = before.seal.current;
  await setting.endpoint('acct_1');
  await setting.endpoint('acct_2');
  const result = await rotateKeys(deps, false);
  const after = readKeys(keysFile);
  expect(result).toEqual({ kid: after.seal.current, resealed: 2, remaining: 0 });
  expect(result.kid).toMatch(/^k\d{8}-[0-9a-f]{8}$/);
  expect(after).toEqual({
    ...before,
    seal: { current: result.kid, keys: { ...before.seal.keys, [result.kid]: expect.any(Buffer) } },
  });
  expect(statSync(keysFile).mode & 0o777).toBe(0o600);
  expect(await showKeys(deps)).toEqual({
    current: result.kid,
    recipients: { sandbox: setting.currentPair(), live: expect.any(String) },
    keys: expect.arrayContaining([
      { kid: old, ...none },
      { ...none, kid: result.kid, endpoints: 2 },
    ]),
  });
  const secret = (await stores.endpoints.get('acct_1', false))?.secrets[0]?.sealed;
  if (secret === undefined) throw new Error('no secret');
  expect(await createSecrets().decrypt(secret, endpointOwner('acct_1', false))).toBe(SECRET);
  // Until each process has read the file, and what it had encrypted before is stored.
  expect(waits).toEqual([expect.any(Number)]);
  expect(waits[0]).toBeGreaterThan(14_000);
  expect(lines[0]).toContain(result.kid);
  expect(lines).toContainEqual(expect.stringMatching(/waiting 1\d s/));
  expect(lines).toContainEqual('signing secrets re-encrypted: 2');
});

test('a rotation that is killed while it waits leaves the new key current, and a continuation finishes it', async () => {
  const { deps } = setting;
  const id = await setting.recipient();
  const killed = async () => {
    throw new Error('killed');
  };
  await expect(rotateKeys({ ...deps, wait: killed }, false, SANDBOX)).rejects.toThrow('killed');
  const kid = setting.currentPair();
  await expect(rotateKeys(deps, false, SANDBOX)).rejects.toEqual(refused('rotation_unfinished'));
  expect(setting.currentPair()).toBe(kid);
  expect(await continueRotation(deps)).toMatchObject({ resealed: 1, remaining: 0 });
  // The wait that was cut short is made up for.
  expect(setting.waits[0]).toBeGreaterThan(0);
  expect(await continueRotation(deps)).toMatchObject({ resealed: 0, remaining: 0 });
  expect(await decrypt(id)).toBe(DETAILS);
});

test('a rotation that is killed halfway continues with the values that are left', async () => {
  const { deps, stores } = setting;
  const ids = await Promise.all(Array.from({ length: 150 }, () => setting.recipient()));
  const dying = { ...deps, stores: killedAfter(stores, 120) };
  await expect(rotateKeys(dying, false, SANDBOX)).rejects.toThrow('killed');
  const kid = setting.currentPair();
  // Writes that were under way at the kill end after it.
  await eventually('120 values', async () => (await countHeld(kid))?.recipients === 120);
  expect(await continueRotation(deps)).toMatchObject({ resealed: 30, remaining: 0 });
  for (const id of ids) expect(await decrypt(id)).toBe(DETAILS);
});

test('of two continuations at once, one encrypts all values and the other is refused', async () => {
  const { deps, stores } = setting;
  const ids = await Promise.all(Array.from({ length: 40 }, () => setting.recipient()));
  await expect(
    rotateKeys({ ...deps, stores: killedAfter(stores, 0) }, false, SANDBOX),
  ).rejects.toThrow();
  const both = await Promise.allSettled([continueRotation(deps), continueRotation(deps)]);
  const [done, other] = both;
  expect(done).toMatchObject({ value: { resealed: 40, remaining: 0 } });
  expect(other).toMatchObject({ reason: refused('keys_file_busy') });
  for (const id of ids) expect(await decrypt(id)).toBe(DETAILS);
});

test.each([
  ['recipients', () => setting.recipient()],
  ['endpoints', () => setting.endpoint('acct_3')],
  ['claims', () => setting.openRecord()],
  ['users', () => setting.user()],
  ['connector_keys', () => setting.connectorKey()],
  ['payer_keys', () => setting.payer()],
])('a key that encrypts %s is not retired before they are encrypted again', async (what, make) => {
  const { deps } = setting;
  const isOfPair = ['recipients', 'claims'].includes(what);
  const [ring, current] = isOfPair
    ? ([SANDBOX, setting.currentPair] as const)
    : (['seal', setting.current] as const);
  const old = current();
  await make();
  const wait = () => Promise.reject(new Error('killed'));
  await expect(rotateKeys({ ...deps, wait }, false, ring)).rejects.toThrow('killed');
  expect(await countHeld(old)).toEqual({ kid: old, ...none, [what]: 1 });
  await expect(retireKey(deps, old)).rejects.toEqual(refused('sealing_key_in_use'));
  // A key of payers, and the payer that it holds.
  const resealed = what === 'payer_keys' ? 2 : 1;
  expect(await continueRotation(deps)).toMatchObject({ resealed, remaining: 0 });
  const keys = await retireKey(deps, old);
  expect(keys).not.toContain(old);
  expect(keys).toContain(current());
  await expect(retireKey(deps, old)).rejects.toEqual(refused('sealing_key_not_found'));
  await expect(retireKey(deps, current())).rejects.toEqual(refused('sealing_key_current'));
});

test('payers get another data key: an old key file and an old dump decrypt nothing that is stored', async () => {
  const { deps, stores, createSecrets, keysFile, readPayers } = setting;
  const copy = `${keysFile}.leaked`;
  writeFileSync(copy, readFileSync(keysFile));
  await setting.payer(...Array.from({ length: 24 }, (_, index) => `p${index}`));
  const dump = await stores.accounts.get('acct_keys');
  if (dump === null) throw new Error('There is no account.');
  const thief = () => readPayers(createEncrypter(followKeyFile(copy).seal), dump);
  const jan = (count: number) => Array.from({ length: count }, () => 'jan@example.com');
  expect(await thief()).toEqual(jan(24));

  let written = 0;
  const reencryptPayer: typeof stores.payments.reencryptPayer = (...args) => {
    written += 1;
    if (written > 12) throw new Error('killed');
    return stores.payments.reencryptPayer(...args);
  };
  const dying = { ...stores, payments: { ...stores.payments, reencryptPayer } };
  await expect(rotateKeys({ ...deps, stores: dying }, false)).rejects.toThrow('killed');
  await expect(rotateKeys(deps, false)).rejects.toEqual(refused('rotation_unfinished'));
  // The key file, then the data keys.
  expect(setting.waits).toEqual([expect.any(Number), expect.any(Number)]);
  expect(await readPayers(createSecrets())).toEqual(jan(24));

  await setting.addPayers(['new', 'newer']);
  setting.waits.length = 0;
  expect(await continueRotation(deps)).toMatchObject({ remaining: 0 });
  // Requests under way may still decrypt what they have read.
  expect(setting.waits.at(-1)).toBe(10_000);
  expect(await readPayers(createSecrets())).toEqual(jan(26));
  expect(await thief()).toEqual(Array.from({ length: 26 }, () => null));
  const { sandbox } = (await stores.accounts.get('acct_keys'))?.payer_keys ?? {};
  expect(sandbox).toEqual({ ...sandbox, kid: setting.current(), earlier: undefined });
  expect(await continueRotation(deps)).toMatchObject({ resealed: 0, remaining: 0 });

  // One that no key decrypts is named, and the key stays that may have encrypted it.
  await stores.payments.reencryptPayer(
    'p1',
    (await readPayer('p1')) ?? '',
    (await readPayer('p2')) ?? '',
  );
  expect(await rotateKeys(deps, false)).toMatchObject({ remaining: 1 });
  expect(setting.lines).toContain('the payer of p1 cannot be decrypted with these keys');
  expect((await readPayers(createSecrets())).filter((email) => email === null)).toHaveLength(1);
});

test('a value that no key decrypts is named and left, and stops neither the others nor a forced rotation', async () => {
  const { deps, stores, lines } = setting;
  const [lost, sound] = [await setting.recipient(), await setting.recipient()];
  const foreign = await stores.recipients.get(sound);
  if (foreign === null) throw new Error('no recipient');
  await setting.db
    .collection<{ _id: string }>('recipients')
    .updateOne({ _id: lost }, { $set: { sealed: foreign.sealed } });
  expect(await rotateKeys(deps, false, SANDBOX)).toMatchObject({ resealed: 1, remaining: 1 });
  expect(lines.filter((line) => line.includes(lost))).toHaveLength(1);
  expect(lines.join()).not.toContain(sound);
  await expect(rotateKeys(deps, false, SANDBOX)).rejects.toEqual(refused('rotation_unfinished'));
  const again = await rotateKeys(deps, true, SANDBOX);
  expect(again).toMatchObject({ resealed: 1, remaining: 1 });
  expect((await countHeld(again.kid))?.recipients).toBe(1);
});

test('an idempotency record left open becomes its recipient, encrypted with the current key', async () => {
  const { deps, stores } = setting;
  const id = await setting.openRecord();
  const old = setting.currentPair();
  expect(await countHeld(old)).toMatchObject({ ...none, claims: 1 });
  const { kid, ...counts } = await rotateKeys(deps, false, SANDBOX);
  expect(counts).toEqual({ resealed: 1, remaining: 0 });
  expect(await decrypt(id)).toBe(DETAILS);
  expect(await stores.recipients.get(id)).toMatchObject({ kid, account_id: 'acct_keys' });
  expect(await stores.idempotency.forResource(id)).toMatchObject({ request: null });
});

test('rotation and continuation are refused while another process changes the keys', async () => {
  const { deps, keysFile } = setting;
  const release = lockKeyFile(keysFile);
  const before = readFileSync(keysFile, 'utf8');
  for (const begin of [() => rotateKeys(deps, false), () => continueRotation(deps)]) {
    await expect(begin()).rejects.toEqual(refused('keys_file_busy'));
  }
  expect(readFileSync(keysFile, 'utf8')).toBe(before);
  release();
  expect(await continueRotation(deps)).toMatchObject({ remaining: 0 });
});

test('keys show counts what each key encrypts, and shows no key', async () => {
  await setting.recipient();
  await setting.endpoint('acct_4');
  await setting.user();
  const kid = setting.current();
  const words = await setting.cli('keys', 'show');
  expect(words.stdout).toMatch(
    /^KEY +RECIPIENTS +ENDPOINTS +CLAIMS +USERS +CONNECTOR KEYS +PAYER KEYS\n/,
  );
  expect(words.stdout).toMatch(new RegExp(`${kid} +current +0 +1 +0 +1 +0 +0`));
  const { stdout } = await setting.cli('keys', 'show', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ current: kid });
  for (const key of Object.values(readKeys(setting.keysFile).seal.keys)) {
    expect(stdout + words.stdout).not.toContain(key.toString('base64url'));
  }
});

test('retire refuses an unknown and the current key', async () => {
  const { refusal } = setting;
  expect(await refusal('keys', 'retire', 'k0')).toMatchObject({ code: 'sealing_key_not_found' });
  const current = await refusal('keys', 'retire', setting.current());
  expect(current).toMatchObject({ code: 'sealing_key_current' });
  expect(await refusal('keys', 'retire')).toMatchObject({ code: 'invalid_usage' });
});

test('an erased recipient is not encrypted again, and its key holds nothing of it', async () => {
  const { cli, refusal, deps, stores, currentPair } = setting;
  const id = await setting.recipient();
  const other = await setting.recipient();
  const erase = async () => JSON.parse((await cli('recipient', 'forget', id, '--json')).stdout);
  const erased = await erase();
  expect(erased).toMatchObject({ id, last4: '0000', deleted_at: expect.any(String) });
  expect(await erase()).toEqual(erased);
  expect(await countHeld(currentPair())).toMatchObject({ recipients: 1 });
  expect(await rotateKeys(deps, false, SANDBOX)).toMatchObject({ resealed: 1, remaining: 0 });
  expect(await stores.recipients.get(id)).toMatchObject({ sealed: null, kid: null });
  expect(await decrypt(other)).toBe(DETAILS);
  expect(await refusal('recipient', 'forget', 'none')).toMatchObject({
    code: 'recipient_not_found',
  });
});

test('the audit log has the request and the outcome of each change of the key files', async () => {
  const { deps, stores } = setting;
  const { kid: first } = await rotateKeys(deps, false, SANDBOX);
  const { kid } = await rotateKeys(deps, false, SANDBOX);
  await retireKey(deps, first);
  const audit = () => Promise.reject(new Error('MongoDB is away'));
  await expect(rotateKeys({ ...deps, audit }, false, SANDBOX)).rejects.toThrow('is away');
  expect(setting.currentPair()).toBe(kid);

  const lines = await stores.auditLog.list({ limit: 4 });
  const before = { current: first };
  expect(lines.map(({ act, target, before, after }) => ({ act, target, before, after }))).toEqual([
    { act: 'keys.retired', target: first, before: null, after: { outcome: 'done' } },
    { act: 'keys.retired', target: first, before: null, after: { outcome: 'requested' } },
    { act: 'keys.rotated', target: SANDBOX, before, after: { outcome: 'done', current: kid } },
    { act: 'keys.rotated', target: SANDBOX, before, after: { outcome: 'requested' } },
  ]);
});

test('the keys of payment links and fingerprints are not rotated', async () => {
  for (const ring of ['pay_token', 'fingerprint']) {
    expect(await setting.refusal('keys', 'rotate', '--ring', ring)).toMatchObject({
      code: 'invalid_usage',
      message: expect.stringContaining('seal, recipients.sandbox, recipients.live'),
    });
  }
});

test('only the key pair of its environment decrypts a recipient', async () => {
  const { cli, refusal, deps, stores, keysFile, keysDir, env } = setting;
  const json = async (...args: string[]) => JSON.parse((await cli(...args, '--json')).stdout);
  const ids = [await setting.recipient(), await setting.recipient()];
  const live = createDetailsDecrypter(keysDir, 'live');
  for (const id of ids) {
    expect(await decrypt(id)).toBe(DETAILS);
    const sealed = (await stores.recipients.get(id))?.sealed ?? Encrypted.parse('');
    for (const other of [live, setting.createSecrets()]) {
      await expect(other.decrypt(sealed, recipientOwner(id))).rejects.toThrow(DecryptionError);
    }
  }
  const first = (await json('keys', 'show')).recipients.sandbox;
  await expect(retireKey(deps, first)).rejects.toEqual(refused('sealing_key_current'));
  const { kid } = await rotateKeys(deps, false, SANDBOX);
  expect((await stores.recipients.get(ids[0] ?? ''))?.kid).toBe(kid);
  // As after a rotation that was killed between its two files.
  const publicFile = keyRingPath(keysDir, 'sandbox', 'public');
  const written = readFileSync(publicFile, 'utf8');
  for (const again of [() => continueRotation(deps), () => retireKey(deps, first)]) {
    writeFileSync(publicFile, written.replace(kid, first));
    await again();
    expect(JSON.parse(readFileSync(publicFile, 'utf8'))).toMatchObject({ current: kid });
  }
  expect((await json('keys', 'show')).recipients.sandbox).toBe(kid);

  env['KEYS_DIR'] = join(dirname(keysFile), 'other');
  expect(await refusal('keys', 'show')).toMatchObject({ code: 'keys_dir_invalid' });
  expect((await json('keys', 'split')).written).toHaveLength(4);
  expect(await json('keys', 'split')).toEqual({ written: [] });
  delete env['KEYS_DIR'];
  expect(await refusal('keys', 'show')).toMatchObject({ code: 'keys_dir_missing' });
  env['KEYS_DIR'] = keysDir;
});

describe('keys of connectors', () => {
  const ROUTES = 'acme=card_payout,polbank=sepa_credit_transfer|sepa_instant';
  const ADDRESS = ['address_line1', 'city', 'postal_code'] as const;
  const NO_DETAILS = { scheme: null, card_expires: null, iban_in_sepa: null, last4: '0000' };
  const CARD = {
    ...{ ...NO_DETAILS, type: 'card' as const },
    has: ['card_number' as const, 'date_of_birth' as const, ...ADDRESS],
  };
  const SEPA = {
    ...{ ...NO_DETAILS, type: 'bank_account' as const, iban_in_sepa: true },
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

  /** Lists connectors whose private file decrypts the recipient, each without that of the others. */
  async function listReaders(id: string): Promise<string[]> {
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

  const listKeyRings = async (id: string) =>
    (await setting.stores.recipients.get(id))?.kid?.split('+').map((kid) => kid.split(':')[0]);

  test('each gets a key ring, and recipients are encrypted again for those that may pay them', async () => {
    const deps = routed(ROUTES);
    const [card, sepa] = [await addRecipient(deps, CARD), await addRecipient(deps, SEPA)];
    const accepted = await addRecipient(deps, CARD, false);
    expect(await listKeyRings(card)).toEqual(['recipients.live']);

    const written = await createPairs(deps);
    expect(written.map((path) => basename(path))).toEqual([
      ...['recipients.live-acme.json', 'recipients.live-acme.public.json'],
      ...['recipients.live-polbank.json', 'recipients.live-polbank.public.json'],
    ]);
    expect(await createPairs(deps)).toEqual([]);
    // The shared file still decrypts for both.
    expect(await listReaders(card)).toEqual(['acme', 'polbank']);

    expect(await continueRotation(deps)).toMatchObject({ resealed: 3, remaining: 0 });
    expect(await continueRotation(deps)).toMatchObject({ resealed: 0, remaining: 0 });
    expect([await listReaders(card), await listReaders(sepa)]).toEqual([['acme'], ['polbank']]);
    expect(await listKeyRings(accepted)).toEqual(['recipients.live-acme']);
    const { recipients, keys } = await showKeys(deps);
    expect(Object.keys(recipients)).toEqual(['sandbox', 'live', 'live-acme', 'live-polbank']);
    const acme = keys.find(({ kid }) => kid === recipients['live-acme']);
    expect(acme).toMatchObject({ recipients: 2, claims: 0 });
  });

  test('the key of one is rotated and retired alone', async () => {
    const deps = routed(ROUTES);
    const name = 'recipients.live-polbank';
    const first = (await showKeys(deps)).recipients['live-polbank'] ?? '';
    const sepa = await addRecipient(deps, SEPA);
    await expect(retireKey(deps, first)).rejects.toMatchObject({ code: 'sealing_key_current' });
    const { kid, remaining } = await rotateKeys(deps, false, name);
    expect(remaining).toBe(0);
    expect((await setting.stores.recipients.get(sepa))?.kid).toBe(kid);
    expect(await retireKey(deps, first)).toEqual([kid]);
    expect(await listReaders(sepa)).toEqual(['polbank']);
  });

  test('recipients are encrypted for every connector that serves their rail', async () => {
    const both = routed('acme=card_payout|sepa_instant,polbank=sepa_credit_transfer');
    const sepa = await addRecipient(routed(ROUTES), SEPA);
    expect(await listReaders(sepa)).toEqual(['polbank']);
    expect(await continueRotation(both)).toMatchObject({ remaining: 0 });
    expect(await listReaders(sepa)).toEqual(['acme', 'polbank']);
    const kids = (await setting.stores.recipients.get(sepa))?.kid?.split('+') ?? [];
    for (const kid of kids) {
      const counts = (await showKeys(both)).keys.find((key) => key.kid === kid);
      expect(counts?.recipients).toBeGreaterThan(0);
    }
    expect(await continueRotation(routed(ROUTES))).toMatchObject({ remaining: 0 });
    expect(await listReaders(sepa)).toEqual(['polbank']);
  });

  test('nothing is encrypted again without the routes of the API', async () => {
    const id = await addRecipient(routed(ROUTES), CARD);
    const noRoutes = {
      code: 'keys_dir_invalid',
      message: expect.stringContaining('LIVE_CONNECTORS'),
    };
    await expect(continueRotation(routed(''))).rejects.toMatchObject(noRoutes);
    await expect(rotateKeys(routed(''), true)).rejects.toMatchObject(noRoutes);
    expect(await setting.refusal('keys', 'show')).toMatchObject(noRoutes);
    const unknown = rotateKeys(routed(ROUTES), true, 'recipients.live-nobody');
    await expect(unknown).rejects.toMatchObject({ code: 'keys_dir_invalid' });
    expect(await listReaders(id)).toEqual(['acme']);
  });

  test('one that has only its own file decrypts nothing of another', async () => {
    const deps = routed(ROUTES);
    const [card, sepa] = [await addRecipient(deps, CARD), await addRecipient(deps, SEPA)];
    rmSync(join(deps.keysDir, 'recipients.live.json'));
    expect([await listReaders(card), await listReaders(sepa)]).toEqual([['acme'], ['polbank']]);
  });
});
