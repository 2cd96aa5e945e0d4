import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import timers from 'node:timers/promises';
import { buildPosition } from '../../src/domain/cursor';
import type { RecipientFacts } from '../../src/domain/payout/recipient';
import { auditKeyPath, readAuditPublicKeys } from '../../src/encryption/audit-keys';
import { createEncrypter, Encrypted, type Encrypter } from '../../src/encryption/encrypter';
import { lockKeyFile } from '../../src/encryption/key-file';
import {
  createDetailsDecrypter,
  createRecipientEncrypters,
} from '../../src/encryption/recipient-keys';
import { keyRingPath, listHolders, readPairs } from '../../src/encryption/recipient-pairs';
import { followKeyFile, readKeys } from '../../src/encryption/service-keys';
import { createConnectors, SANDBOX_CONNECTOR } from '../../src/routing';
import { createPayers, readPayers } from '../../src/service/money/payers';
import {
  continueRotation,
  createPairs,
  type KeyDeps,
  retireKey,
  rotateKeys,
  showKeys,
} from '../../src/service/operators/key-rotation/rotate';
import { ensureIndexes } from '../../src/store';
import type { AccountDocument } from '../../src/store/accounts';
import { secretOwner } from '../../src/store/endpoints';
import { connectorKeyOwner } from '../../src/store/keys';
import { buildRecipient, recipientOwner } from '../../src/store/recipients';
import { totpOwner } from '../../src/store/users';
import { openUser } from '../support/dashboard';
import { eventually, retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { openProvisioning } from './cli';

const DETAILS = '{"first_name":"Ada"}';
const SECRET = 'whsec_of_an_endpoint';
const toEndpointKey = (account_id: string) => ({
  ...{ account_id, livemode: false, endpoint_id: `we_${account_id}` },
});
const SANDBOX = 'recipients.sandbox';
const COLLECTIONS = [
  ...['accounts', 'recipients', 'idempotency_records', 'webhook_endpoints', 'users'],
  ...['connector_keys', 'payments'],
];
const none = {
  ...{ recipients: 0, endpoints: 0, claims: 0, users: 0, connector_keys: 0, payer_keys: 0 },
  evidence: 0,
};

type Facts = RecipientFacts & { last4: string };
const OTHER: Facts = {
  ...{ type: 'bank_account', has: [], last4: '0000' },
  ...{ scheme: null, card_expires: null, iban_in_sepa: null },
};
const ADDRESS = ['address_line1', 'city', 'postal_code'] as const;
const CARD: Facts = { ...OTHER, type: 'card', has: ['card_number', 'date_of_birth', ...ADDRESS] };
const SEPA: Facts = { ...OTHER, iban_in_sepa: true, has: ['iban', ...ADDRESS] };

/** A database with encrypted values and key files of its own; no wait takes time. */
async function openKeys() {
  const opened = await openProvisioning();
  const { db, env, stores, deps: audited } = opened;
  await retryUntilDone(() => ensureIndexes(stores));
  const [keysFile = '', keysDir = ''] = [env['KEYS_FILE'], env['KEYS_DIR']];
  const lines: string[] = [];
  const waits: number[] = [];
  const deps: KeyDeps = {
    stores,
    audit: audited.audit,
    keysFile,
    keysDir,
    connectors: createConnectors(SANDBOX_CONNECTOR),
    // Stands at the last change of the keys, from which on a rotation waits.
    now: () => {
      const files = listHolders(keysDir).map((holder) => keyRingPath(keysDir, holder, 'public'));
      return new Date(Math.max(...[keysFile, ...files].map((file) => statSync(file).mtimeMs)));
    },
    wait: async (ms) => {
      waits.push(ms);
    },
    progress: (line) => lines.push(line),
  };
  const log = { error: () => undefined };
  const account_id = 'acct_keys';
  /** Encrypts and decrypts as a process that has just started. */
  const createSecrets = () => createEncrypter(followKeyFile(keysFile).seal);
  /** Stores a recipient as the API does, with its key reserved; or stops before it is stored. */
  const addRecipient = async ({
    livemode = false,
    facts = OTHER,
    isStored = true,
    connectors = deps.connectors,
    encrypters = createRecipientEncrypters(keysDir, (rail) =>
      connectors.listConnectors(rail, true),
    ),
  } = {}) => {
    const id = randomUUID();
    const encrypter = encrypters[livemode ? 'live' : 'sandbox'];
    const ciphertext = await encrypter.encrypt(DETAILS, recipientOwner(id), facts);
    const request = { recipient: { ...facts, ciphertext, kid: encrypter.getKid(ciphertext) } };
    const owner = { account_id, livemode, request_id: 'req' };
    const use = { operation: 'createRecipient', key: id, fingerprint: 'f', resource_id: id };
    await stores.idempotency.reserveKey({ ...owner, ...use, request }, new Date());
    if (!isStored) return id;
    await stores.recipients.insert(buildRecipient({ id, ...owner }, request, new Date()));
    await stores.idempotency.markWritten(id);
    return id;
  };
  const addPayers = async (ids: readonly string[]): Promise<void> => {
    const payers = createPayers({ accounts: stores.accounts, encrypter: createSecrets(), log });
    const owner = { account_id, livemode: false };
    const names = { email: 'jan@example.com', first_name: null, last_name: null, reference: null };
    const payments = db.collection<{ _id: string }>('payments');
    for (const [index, _id] of ids.slice(0, -1).entries()) {
      const place = { token_hash: _id, position: buildPosition(0, index) + _id };
      const customer = await payers.encrypt(owner, _id, names);
      await payments.insertOne(Object.assign({ _id, ...owner, ...place }, { customer }));
    }
    const last = ids.at(-1) ?? '';
    const customer = await payers.encrypt(owner, last, names);
    const stored = { reference: null, metadata: '{}', success_url: '', error_url: '', customer };
    const use = { ...owner, operation: 'createPayment', key: last, fingerprint: 'f' };
    const about = { resource_id: last, request_id: 'req', request: { stored, routing: Object() } };
    await stores.idempotency.reserveKey({ ...use, ...about }, new Date());
  };
  return {
    ...{ ...opened, keysFile, keysDir, deps, lines, waits, createSecrets, addRecipient, addPayers },
    current: () => readKeys(keysFile).seal.current,
    /** Current key of recipients of the sandbox. */
    currentPair: () => readPairs(keysDir, 'sandbox').current,
    endpoint: async (account: string): Promise<void> => {
      const key = toEndpointKey(account);
      const ciphertext = await createSecrets().encrypt(SECRET, secretOwner(key));
      const url = 'https://shop.example/hook';
      await stores.endpoints.set({ ...key, url, ciphertext, now: new Date() });
    },
    /** Adds a user with a second factor. */
    user: async (): Promise<void> => {
      const { _id } = await openUser(stores, account_id);
      const totp_offered = await createSecrets().encrypt(SECRET, totpOwner(_id));
      const totp_offer = { session: '', until: new Date() };
      await stores.users.offerTotp(_id, { totp_offered, totp_offer });
    },
    connectorKey: async (): Promise<void> => {
      const _id = `cnkey_${randomUUID()}`;
      const ciphertext = await createSecrets().encrypt(SECRET, connectorKeyOwner(_id));
      const times = { created_at: new Date().toISOString(), revoked_at: null };
      await stores.connectorKeys.insert({ _id, connector: 'sandbox', ciphertext, ...times });
    },
    /** Adds a merchant whose sandbox has these payers, the last of them in a request. */
    payer: async (...ids: string[]): Promise<void> => {
      const account = { _id: account_id, name: 'Keys', crypto: false, enabled_methods: [] };
      const dashboard = { email: 'keys@example.com' };
      await stores.accounts.insert({ ...account, dashboard, created_at: '2026-03-01' });
      await addPayers(ids);
    },
    /** Reads all stored payers, as a process with these keys and this account. */
    readPayers: async (encrypter: Encrypter, account?: AccountDocument) => {
      const getCached = async () => account ?? (await stores.accounts.get(account_id));
      const accounts = { ...stores.accounts, getCached, refresh: getCached };
      const { decrypt } = createPayers({ accounts, encrypter, log });
      const emails: (string | null)[] = [];
      for await (const batch of readPayers(stores, { account_id, livemode: false })) {
        for (const payer of batch) emails.push((await decrypt(payer)).email);
      }
      return emails;
    },
  };
}

const setting = useFixture(openKeys, (opened) => opened.close());
beforeEach(async () => {
  for (const name of COLLECTIONS) await setting.db.collection(name).deleteMany();
  setting.lines.length = 0;
  setting.waits.length = 0;
});

/** Returns a function that is killed in each call after the first ones. */
function dieAfter<Args extends unknown[], T>(calls: number, call: (...args: Args) => Promise<T>) {
  let count = 0;
  return (...args: Args): Promise<T> => {
    count += 1;
    if (count > calls) throw new Error('killed');
    return call(...args);
  };
}

const refused = (code: string) => expect.objectContaining({ name: 'ServiceError', code });
const countHeld = async (kid: string) =>
  (await showKeys(setting.deps)).keys.find((key) => key.kid === kid);
const readCiphertext = async (id: string) =>
  Encrypted.parse((await setting.stores.recipients.get(id))?.ciphertext);
const openBank = () => createDetailsDecrypter(setting.keysDir, 'sandbox');
const decrypt = async (id: string, bank: Pick<Encrypter, 'decrypt'> = openBank()) =>
  await bank.decrypt(await readCiphertext(id), recipientOwner(id));
const rotatePair = (deps = setting.deps) => rotateKeys(deps, false, SANDBOX);
const addRecipients = (length: number) =>
  Promise.all(Array.from({ length }, () => setting.addRecipient()));

describe('a rotation', () => {
  test('creates a key, waits, and encrypts all values again with it', async () => {
    const { deps, stores, createSecrets, lines, waits, keysFile } = setting;
    const before = readKeys(keysFile);
    await setting.endpoint('acct_1');
    await setting.endpoint('acct_2');
    const { kid, ...counts } = await rotateKeys(deps, false);
    expect(counts).toEqual({ resealed: 2, remaining: 0 });
    expect(kid).toMatch(/^k\d{8}-[0-9a-f]{8}$/);
    const keys = { ...before.seal.keys, [kid]: expect.any(Buffer) };
    expect(readKeys(keysFile)).toEqual({ ...before, seal: { current: kid, keys } });
    expect(statSync(keysFile).mode & 0o777).toBe(0o600);
    expect(await countHeld(before.seal.current)).toEqual({ ...none, kid: before.seal.current });
    expect(await countHeld(kid)).toEqual({ ...none, kid, endpoints: 2 });
    const [secret] = (await stores.endpoints.get('acct_1', false))?.secrets ?? [];
    const owner = secretOwner(toEndpointKey('acct_1'));
    expect(await createSecrets().decrypt(Encrypted.parse(secret?.ciphertext), owner)).toBe(SECRET);
    // Until each process has read the file, and what it had encrypted before is stored.
    expect(waits).toEqual([expect.any(Number)]);
    expect(waits[0]).toBeGreaterThan(14_000);
    expect(lines[0]).toContain(kid);
    expect(lines).toContainEqual(expect.stringMatching(/waiting 1\d s/));
    expect(lines).toContainEqual('signing secrets re-encrypted: 2');
  });

  test('that is killed halfway is continued by one of two at once, with the values that are left', async () => {
    const { deps, keysFile } = setting;
    const ids = await addRecipients(150);
    const { stores } = deps;
    const reencrypt = dieAfter(120, stores.recipients.reencrypt);
    const dying = { ...stores, recipients: { ...stores.recipients, reencrypt } };
    await expect(rotatePair({ ...deps, stores: dying })).rejects.toThrow('killed');
    const kid = setting.currentPair();
    // Writes that were under way at the kill end after it.
    await eventually('120 values', async () => (await countHeld(kid))?.recipients === 120);
    const release = lockKeyFile(keysFile);
    const before = readFileSync(keysFile, 'utf8');
    for (const begin of [() => rotateKeys(deps, true), () => continueRotation(deps)]) {
      await expect(begin()).rejects.toEqual(refused('keys_file_busy'));
    }
    expect(readFileSync(keysFile, 'utf8')).toBe(before);
    release();
    const both = await Promise.allSettled([continueRotation(deps), continueRotation(deps)]);
    expect(both).toMatchObject([
      { value: { resealed: 30, remaining: 0 } },
      { reason: refused('keys_file_busy') },
    ]);
    for (const id of ids) expect(await decrypt(id)).toBe(DETAILS);
  });

  test('names and leaves a value that no key decrypts, which stops neither the others nor a forced rotation', async () => {
    const { db, deps, lines } = setting;
    const [lost = '', sound = ''] = await addRecipients(2);
    const recipients = db.collection<{ _id: string }>('recipients');
    await recipients.updateOne(
      { _id: lost },
      { $set: { ciphertext: await readCiphertext(sound) } },
    );
    expect(await rotatePair()).toMatchObject({ resealed: 1, remaining: 1 });
    expect(lines.filter((line) => line.includes(lost))).toHaveLength(1);
    expect(lines.join()).not.toContain(sound);
    await expect(rotatePair()).rejects.toEqual(refused('rotation_unfinished'));
    const again = await rotateKeys(deps, true, SANDBOX);
    expect(again).toMatchObject({ resealed: 1, remaining: 1 });
    expect((await countHeld(again.kid))?.recipients).toBe(1);
  });

  test('turns an idempotency record left open into its recipient, and encrypts no erased recipient again', async () => {
    const { stores, json } = setting;
    const id = await setting.addRecipient({ isStored: false });
    const { kid, ...counts } = await rotatePair();
    expect(counts).toEqual({ resealed: 1, remaining: 0 });
    expect(await decrypt(id)).toBe(DETAILS);
    expect(await stores.recipients.get(id)).toMatchObject({ kid, account_id: 'acct_keys' });
    expect(await stores.idempotency.forResource(id)).toMatchObject({ request: null });
    await addRecipients(1);
    const erased = await json('recipient', 'forget', id);
    expect(erased).toMatchObject({ id, last4: '0000', deleted_at: expect.any(String) });
    expect(await json('recipient', 'forget', id)).toEqual(erased);
    expect(await rotatePair()).toMatchObject({ resealed: 1, remaining: 0 });
    expect(await stores.recipients.get(id)).toMatchObject({ ciphertext: null, kid: null });
  });

  test('gives payers another data key: an old key file and an old dump decrypt nothing that is stored', async () => {
    const { deps, stores, createSecrets, keysFile } = setting;
    const copy = `${keysFile}.leaked`;
    writeFileSync(copy, readFileSync(keysFile));
    await setting.payer(...Array.from({ length: 24 }, (_, index) => `p${index}`));
    const dump = (await stores.accounts.get('acct_keys')) ?? undefined;
    const readAsThief = () =>
      setting.readPayers(createEncrypter(followKeyFile(copy).seal), dump ?? Object());
    const jan = (count: number) => Array.from({ length: count }, () => 'jan@example.com');
    expect(await readAsThief()).toEqual(jan(24));

    const { payments } = stores;
    const reencryptPayer = dieAfter(12, payments.reencryptPayer);
    const dying = { ...stores, payments: { ...payments, reencryptPayer } };
    await expect(rotateKeys({ ...deps, stores: dying }, false)).rejects.toThrow('killed');
    await expect(rotateKeys(deps, false)).rejects.toEqual(refused('rotation_unfinished'));
    // The key file, then the data keys.
    expect(setting.waits).toEqual([expect.any(Number), expect.any(Number)]);
    expect(await setting.readPayers(createSecrets())).toEqual(jan(24));

    await setting.addPayers(['new', 'newer']);
    setting.waits.length = 0;
    expect(await continueRotation(deps)).toMatchObject({ remaining: 0 });
    // Requests under way may still decrypt what they have read.
    expect(setting.waits.at(-1)).toBe(10_000);
    expect(await setting.readPayers(createSecrets())).toEqual(jan(26));
    expect(await readAsThief()).toEqual(Array.from({ length: 26 }, () => null));
    const { sandbox } = (await stores.accounts.get('acct_keys'))?.payer_keys ?? {};
    expect(sandbox).toEqual({ ...sandbox, kid: setting.current(), earlier: undefined });

    // One that no key decrypts is named, and the key stays that may have encrypted it.
    const [first, second] = [await payments.get('p1'), await payments.get('p2')];
    const names = [first?.customer.ciphertext ?? '', second?.customer.ciphertext ?? ''] as const;
    await payments.reencryptPayer('p1', ...names);
    expect(await rotateKeys(deps, false)).toMatchObject({ remaining: 1 });
    expect(setting.lines).toContain('the payer of p1 cannot be decrypted with these keys');
    const emails = await setting.readPayers(createSecrets());
    expect(emails.filter((email) => email === null)).toHaveLength(1);
  });
});

test.each([
  ['recipients', () => setting.addRecipient()],
  ['endpoints', () => setting.endpoint('acct_3')],
  ['claims', () => setting.addRecipient({ isStored: false })],
  ['users', () => setting.user()],
  ['connector_keys', () => setting.connectorKey()],
  ['payer_keys', () => setting.payer('some-payment')],
])('a key that encrypts %s is not retired before they are encrypted again', async (what, add) => {
  const { deps } = setting;
  const isOfPair = ['recipients', 'claims'].includes(what);
  const current = isOfPair ? setting.currentPair : setting.current;
  const old = current();
  await add();
  const wait = () => Promise.reject(new Error('killed'));
  const rotation = rotateKeys({ ...deps, wait }, false, isOfPair ? SANDBOX : 'seal');
  await expect(rotation).rejects.toThrow('killed');
  expect(await countHeld(old)).toEqual({ kid: old, ...none, [what]: 1 });
  const next = current();
  await expect(rotateKeys(deps, false)).rejects.toEqual(refused('rotation_unfinished'));
  expect(current()).toBe(next);
  await expect(retireKey(deps, old)).rejects.toEqual(refused('sealing_key_in_use'));
  // A key of payers, and the payer that it holds.
  const resealed = what === 'payer_keys' ? 2 : 1;
  expect(await continueRotation(deps)).toMatchObject({ resealed, remaining: 0 });
  // The wait that was cut short is made up for.
  expect(setting.waits[0]).toBeGreaterThan(0);
  expect(await continueRotation(deps)).toMatchObject({ resealed: 0, remaining: 0 });
  const keys = await retireKey(deps, old);
  expect(keys).not.toContain(old);
  expect(keys).toContain(current());
  await expect(retireKey(deps, old)).rejects.toEqual(refused('sealing_key_not_found'));
  await expect(retireKey(deps, current())).rejects.toEqual(refused('sealing_key_current'));
});

test('the audit log has the request and the outcome of each change of the key files', async () => {
  const { deps, stores } = setting;
  const { kid: first } = await rotatePair();
  const { kid } = await rotatePair();
  await retireKey(deps, first);
  const audit = () => Promise.reject(new Error('MongoDB is away'));
  await expect(rotatePair({ ...deps, audit })).rejects.toThrow('is away');
  expect(setting.currentPair()).toBe(kid);
  const lines = await stores.auditLog.list({ limit: 4 });
  const before = { current: first };
  expect(lines.map((line) => [line.act, line.target, line.before, line.after])).toEqual([
    ['keys.retired', first, null, { outcome: 'done' }],
    ['keys.retired', first, null, { outcome: 'requested' }],
    ['keys.rotated', SANDBOX, before, { outcome: 'done', current: kid }],
    ['keys.rotated', SANDBOX, before, { outcome: 'requested' }],
  ]);
});

test('a rotation or a removal publishes the key pair of a rotation that stopped between its two files', async () => {
  const { deps, keysDir } = setting;
  const first = setting.currentPair();
  const { kid } = await rotatePair();
  const publicFile = keyRingPath(keysDir, 'sandbox', 'public');
  const written = readFileSync(publicFile, 'utf8');
  for (const again of [() => continueRotation(deps), () => retireKey(deps, first)]) {
    writeFileSync(publicFile, written.replace(kid, first));
    await again();
    expect(JSON.parse(readFileSync(publicFile, 'utf8'))).toMatchObject({ current: kid });
  }
});

describe('the command', () => {
  test('keys show counts what each key encrypts, and shows no key', async () => {
    await setting.endpoint('acct_4');
    await setting.user();
    const { stdout: words } = await setting.cli('keys show');
    const columns = Object.keys(none).map((name) => name.toUpperCase().replace('_', ' '));
    expect(words.split('\n')[0]?.split(/ {2,}/)).toEqual(['KEY', ...columns]);
    const current = setting.current();
    expect(words).toMatch(new RegExp(`${current} +current +0 +1 +0 +1 +0 +0`));
    const shown = await setting.json('keys show');
    expect(shown).toMatchObject({ current, recipients: { sandbox: setting.currentPair() } });
    for (const key of Object.values(readKeys(setting.keysFile).seal.keys)) {
      expect(JSON.stringify(shown) + words).not.toContain(key.toString('base64url'));
    }
  });

  test('keys split writes the key pairs that KEYS_DIR lacks', async () => {
    const { env, keysDir, keysFile } = setting;
    const other = join(dirname(keysFile), 'other');
    env['KEYS_DIR'] = other;
    const refuse = async () => (await setting.refusal('keys show')).code;
    const split = async () => Object(await setting.json('keys split')).written;
    expect(await refuse()).toBe('keys_dir_invalid');
    expect(await split()).toHaveLength(8);
    expect(await split()).toEqual([]);
    const removed = auditKeyPath(other, 'worker');
    rmSync(removed);
    const audit = () => Promise.reject(new Error('MongoDB is away'));
    const unrecorded = createPairs({ ...setting.deps, keysDir: other, audit });
    await expect(unrecorded).rejects.toThrow('is away');
    expect(existsSync(removed)).toBe(false);
    const published = join(other, 'audit.public.json');
    expect(await split()).toEqual([removed, published]);
    const expectLines = async (target: string) => {
      const lines = await setting.stores.auditLog.list({ limit: 2 });
      const act = { act: 'keys.rotated', target };
      const outcomes = ['done', 'requested'].map((outcome) => ({ ...act, after: { outcome } }));
      expect(lines).toMatchObject(outcomes);
    };
    await expectLines(`${basename(removed)}, audit.public.json`);
    const { worker, api } = readAuditPublicKeys(other);
    expect([worker, api]).toMatchObject([[{}, {}], [{}]]);
    rmSync(published);
    expect(await split()).toEqual([published]);
    await expectLines('audit.public.json');
    env['KEYS_DIR'] = '';
    expect(await refuse()).toBe('keys_dir_missing');
    env['KEYS_DIR'] = keysDir;
  });

  test('keys rotate encrypts every value again next to running processes, and keys retire removes the old key', async () => {
    const { addRecipient, cli, keysDir, stores } = setting;
    // Processes that have only encrypted or decrypted since before the rotations.
    const running = { encrypters: createRecipientEncrypters(keysDir) };
    const bank = createDetailsDecrypter(keysDir, 'sandbox');
    const ids = [await addRecipient(running), await addRecipient(running)];
    const first = setting.currentPair();

    // These processes read the files each second, and store at once what they encrypt.
    const { setTimeout: sleep } = timers;
    const waiting = jest.spyOn(timers, 'setTimeout');
    waiting.mockImplementation((ms = 0, value) => sleep(Math.min(ms, 5_000), value));
    let isDone = false;
    const create = async () => {
      while (!isDone) ids.push(await addRecipient(running));
    };
    const rotation = cli('keys', 'rotate', '--ring', SANDBOX).finally(() => {
      isDone = true;
    });
    const [outcome] = await Promise.all([rotation, create(), create(), create()]);
    expect(outcome).toMatchObject({ exit: 0, stdout: expect.stringMatching(/Remaining: +0\n$/) });
    // A busy machine may have waited for long enough before.
    expect(outcome.stderr).toMatch(
      /is the current key\n(waiting \d+ s: .*\n)?recipients re-encrypted: /,
    );
    const { current, keys } = readPairs(keysDir, 'sandbox');
    expect(Object.keys(keys)).toEqual(expect.arrayContaining([first, current]));
    expect(ids.length).toBeGreaterThanOrEqual(5);
    for (const id of ids) {
      expect((await stores.recipients.get(id))?.kid).toBe(current);
      expect(await decrypt(id, bank)).toBe(DETAILS);
    }

    const retired = await setting.json('keys', 'retire', first);
    expect(retired).toMatchObject({ retired: first, keys: expect.arrayContaining([current]) });
    waiting.mockRestore();
    const added = await addRecipient(running);
    expect((await stores.recipients.get(added))?.kid).toBe(current);
    for (const id of [added, ...ids.slice(0, 1)]) expect(await decrypt(id, bank)).toBe(DETAILS);
  });
});

describe('keys of connectors', () => {
  const ROUTES = 'acme=card_payout,polbank=sepa_credit_transfer|sepa_instant';

  const routed = (routes: string): KeyDeps => ({
    ...setting.deps,
    connectors: createConnectors(SANDBOX_CONNECTOR, routes),
  });

  /** Adds a recipient of live, as an API with these routes stores it, or has only accepted it. */
  const addLive = ({ connectors }: KeyDeps, facts: Facts, isStored = true) =>
    setting.addRecipient({ livemode: true, facts, isStored, connectors });

  /** Lists connectors whose private file decrypts the recipient, each without that of the others. */
  async function listReaders(id: string): Promise<string[]> {
    const readers = ['acme', 'polbank'].map(async (connector) => {
      const decrypter = createDetailsDecrypter(setting.keysDir, 'live', connector);
      const text = await decrypt(id, decrypter).catch(() => undefined);
      return text === DETAILS ? [connector] : [];
    });
    return (await Promise.all(readers)).flat();
  }

  test('each gets a key ring, and recipients are encrypted again for those that may pay them', async () => {
    const deps = routed(ROUTES);
    const [card, sepa] = [await addLive(deps, CARD), await addLive(deps, SEPA)];
    const accepted = await addLive(deps, CARD, false);
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
    const readers = [card, sepa, accepted].map(listReaders);
    expect(await Promise.all(readers)).toEqual([['acme'], ['polbank'], ['acme']]);
    const { recipients } = await showKeys(deps);
    expect(Object.keys(recipients)).toEqual(['sandbox', 'live', 'live-acme', 'live-polbank']);

    const both = routed('acme=card_payout|sepa_instant,polbank=sepa_credit_transfer');
    expect(await continueRotation(both)).toMatchObject({ remaining: 0 });
    expect(await listReaders(sepa)).toEqual(['acme', 'polbank']);
    const { keys } = await showKeys(both);
    const count = (name: string) => keys.find(({ kid }) => kid === recipients[name])?.recipients;
    expect(['live-acme', 'live-polbank'].map(count)).toEqual([3, 1]);
    expect(await continueRotation(deps)).toMatchObject({ remaining: 0 });
    expect(await listReaders(sepa)).toEqual(['polbank']);
  });

  test('are rotated and retired one by one, and encrypt nothing again without the routes of the API', async () => {
    const deps = routed(ROUTES);
    const first = (await showKeys(deps)).recipients['live-polbank'] ?? '';
    const [sepa, card] = [await addLive(deps, SEPA), await addLive(deps, CARD)];
    const { kid, remaining } = await rotateKeys(deps, false, 'recipients.live-polbank');
    expect(remaining).toBe(0);
    expect((await setting.stores.recipients.get(sepa))?.kid).toBe(kid);
    expect(await retireKey(deps, first)).toEqual([kid]);
    expect([await listReaders(sepa), await listReaders(card)]).toEqual([['polbank'], ['acme']]);
    const message = expect.stringContaining('LIVE_CONNECTORS');
    const noRoutes = { code: 'keys_dir_invalid', message };
    await expect(continueRotation(routed(''))).rejects.toMatchObject(noRoutes);
    await expect(rotateKeys(routed(''), true)).rejects.toMatchObject(noRoutes);
    expect(await setting.refusal('keys', 'show')).toMatchObject(noRoutes);
    const unknown = rotateKeys(deps, true, 'recipients.live-nobody');
    await expect(unknown).rejects.toEqual(refused('keys_dir_invalid'));
  });
});
