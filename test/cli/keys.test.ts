import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Document } from 'mongodb';
import { resealKeys, retireKey, rotateKeys, showKeys } from '../../src/cli/keys';
import { LINK_RINGS, retireLinkKey } from '../../src/cli/link-keys';
import { readKeys } from '../../src/config';
import { claimMark } from '../../src/keys/claim-mark';
import { lockKeyFile } from '../../src/keys/file';
import { createRecipientSealers, recipientOpener, ringPath } from '../../src/keys/recipient-rings';
import { followRings } from '../../src/keys/ring';
import { SealError, Sealed } from '../../src/keys/seal';
import { endpointOwner } from '../../src/store/endpoints';
import { recipientOwner } from '../../src/store/recipients';
import { eventually } from '../support/http';
import { DETAILS, type KeysSetting, killedAfter, openKeysSetting, SECRET } from './keys-setting';

let setting: KeysSetting;

beforeAll(async () => {
  setting = await openKeysSetting();
});
afterAll(async () => await setting.close());
beforeEach(async () => await setting.clear());

const none = {
  recipients: 0,
  endpoints: 0,
  claims: 0,
  users: 0,
  connector_keys: 0,
  payer_keys: 0,
};
const refused = (code: string) => expect.objectContaining({ name: 'CliFailure', code });
const heldBy = async (kid: string) =>
  (await showKeys(setting.deps)).keys.find((key) => key.kid === kid);
const opened = async (id: string) => {
  const recipient = await setting.stores.recipients.get(id);
  if (!recipient?.sealed) throw new Error(`no recipient ${id}`);
  return await setting.sealer().open(recipient.sealed, recipientOwner(id));
};

test('a rotation makes a key, waits, and seals with it whatever was sealed before', async () => {
  const { deps, stores, sealer, lines, waits, keysFile } = setting;
  const before = readKeys(keysFile);
  const old = before.seal.current;
  const ids = await Promise.all(Array.from({ length: 250 }, () => setting.recipient()));
  await setting.endpoint('acct_1');
  await setting.endpoint('acct_2');
  const result = await rotateKeys(deps, false);
  const after = readKeys(keysFile);
  expect(result).toEqual({ kid: after.seal.current, resealed: 252, remaining: 0 });
  expect(result.kid).toMatch(/^k\d{8}-[0-9a-f]{8}$/);
  expect(after).toEqual({
    ...before,
    seal: { current: result.kid, keys: { ...before.seal.keys, [result.kid]: expect.any(Buffer) } },
  });
  expect(statSync(keysFile).mode & 0o777).toBe(0o600);
  expect(await showKeys(deps)).toEqual({
    current: result.kid,
    keys: expect.arrayContaining([
      { kid: old, ...none },
      { ...none, kid: result.kid, recipients: 250, endpoints: 2 },
    ]),
  });
  for (const id of ids) expect(await opened(id)).toBe(DETAILS);
  const secret = (await stores.endpoints.get('acct_1', false))?.secrets[0]?.sealed;
  if (secret === undefined) throw new Error('no secret');
  expect(await sealer().open(secret, endpointOwner('acct_1', false))).toBe(SECRET);
  // Until each process has looked, and what it had sealed before is stored.
  expect(waits).toEqual([expect.any(Number)]);
  expect(waits[0]).toBeGreaterThan(14_000);
  expect(lines[0]).toContain(result.kid);
  expect(lines).toContainEqual(expect.stringMatching(/waiting 1\d s/));
  expect(lines).toContainEqual('recipients sealed anew: 250');
});

test('killed while it waits, the new key is current, and reseal does the rest', async () => {
  const { deps } = setting;
  const id = await setting.recipient();
  const killed = async () => {
    throw new Error('killed');
  };
  await expect(rotateKeys({ ...deps, wait: killed }, false)).rejects.toThrow('killed');
  const kid = setting.current();
  await expect(rotateKeys(deps, false)).rejects.toEqual(refused('rotation_unfinished'));
  expect(setting.current()).toBe(kid);
  expect(await resealKeys(deps)).toEqual({ kid, resealed: 1, remaining: 0 });
  // The wait that was cut short is made up for.
  expect(setting.waits[0]).toBeGreaterThan(0);
  expect(await resealKeys(deps)).toEqual({ kid, resealed: 0, remaining: 0 });
  expect(await opened(id)).toBe(DETAILS);
});

test('killed in the middle, it goes on where it stood', async () => {
  const { deps, stores } = setting;
  const ids = await Promise.all(Array.from({ length: 150 }, () => setting.recipient()));
  const dying = { ...deps, stores: killedAfter(stores, 120) };
  await expect(rotateKeys(dying, false)).rejects.toThrow('killed');
  const kid = setting.current();
  // Writes that were under way at the kill end after it.
  await eventually('120 values', async () => (await heldBy(kid))?.recipients === 120);
  expect(await resealKeys(deps)).toEqual({ kid, resealed: 30, remaining: 0 });
  for (const id of ids) expect(await opened(id)).toBe(DETAILS);
});

test('two that reseal at once do each value once', async () => {
  const { deps, stores } = setting;
  const ids = await Promise.all(Array.from({ length: 40 }, () => setting.recipient()));
  await expect(rotateKeys({ ...deps, stores: killedAfter(stores, 0) }, false)).rejects.toThrow();
  const both = await Promise.allSettled([resealKeys(deps), resealKeys(deps)]);
  const [done, other] = both;
  expect(done).toMatchObject({ value: { resealed: 40, remaining: 0 } });
  expect(other).toMatchObject({ reason: refused('keys_file_busy') });
  for (const id of ids) expect(await opened(id)).toBe(DETAILS);
});

test.each([
  ['recipients', () => setting.recipient()],
  ['endpoints', () => setting.endpoint('acct_3')],
  ['claims', () => setting.claim()],
  ['users', () => setting.user()],
  ['connector_keys', () => setting.connectorKey()],
  ['payer_keys', () => setting.payer()],
])('a key that holds %s is not retired before reseal has moved them', async (what, make) => {
  const { deps, keysFile } = setting;
  const old = setting.current();
  await make();
  const wait = () => Promise.reject(new Error('killed'));
  await expect(rotateKeys({ ...deps, wait }, false)).rejects.toThrow('killed');
  expect(await heldBy(old)).toEqual({ kid: old, ...none, [what]: 1 });
  await expect(retireKey(deps, old)).rejects.toEqual(refused('sealing_key_in_use'));
  expect(await resealKeys(deps)).toMatchObject({ resealed: 1, remaining: 0 });
  const keys = await retireKey(deps, old);
  expect(keys).not.toContain(old);
  expect(Object.keys(readKeys(keysFile).seal.keys)).toEqual(keys);
  await expect(retireKey(deps, old)).rejects.toEqual(refused('sealing_key_not_found'));
  await expect(retireKey(deps, setting.current())).rejects.toEqual(refused('sealing_key_current'));
});

test('what nobody can open is named, stays, and holds up neither the rest nor a forced rotation', async () => {
  const { deps, stores, lines } = setting;
  const [lost, sound] = [await setting.recipient(), await setting.recipient()];
  const foreign = await stores.recipients.get(sound);
  if (foreign === null) throw new Error('no recipient');
  await setting.db
    .collection<{ _id: string }>('recipients')
    .updateOne({ _id: lost }, { $set: { sealed: foreign.sealed } });
  expect(await rotateKeys(deps, false)).toMatchObject({ resealed: 1, remaining: 1 });
  expect(lines.filter((line) => line.includes(lost))).toHaveLength(1);
  expect(lines.join()).not.toContain(sound);
  await expect(rotateKeys(deps, false)).rejects.toEqual(refused('rotation_unfinished'));
  const again = await rotateKeys(deps, true);
  expect(again).toMatchObject({ resealed: 1, remaining: 1 });
  expect((await heldBy(again.kid))?.recipients).toBe(1);
});

test('a claim that was left open becomes its recipient, sealed with the current key', async () => {
  const { deps, stores } = setting;
  const id = await setting.claim();
  const old = setting.current();
  expect(await heldBy(old)).toMatchObject({ ...none, claims: 1 });
  const { kid, ...counts } = await rotateKeys(deps, false);
  expect(counts).toEqual({ resealed: 1, remaining: 0 });
  expect(await opened(id)).toBe(DETAILS);
  expect(await stores.recipients.get(id)).toMatchObject({ kid, account_id: 'acct_keys' });
  expect(await stores.idempotency.forResource(id)).toMatchObject({ request: null });
});

test('while another process changes the keys, none of it begins', async () => {
  const { deps, keysFile } = setting;
  const release = lockKeyFile(keysFile);
  const before = readFileSync(keysFile, 'utf8');
  for (const begin of [() => rotateKeys(deps, false), () => resealKeys(deps)]) {
    await expect(begin()).rejects.toEqual(refused('keys_file_busy'));
  }
  expect(readFileSync(keysFile, 'utf8')).toBe(before);
  release();
  expect(await resealKeys(deps)).toMatchObject({ remaining: 0 });
});

test('keys show tells what each key holds, in words and in JSON', async () => {
  await setting.recipient();
  await setting.endpoint('acct_4');
  await setting.user();
  const kid = setting.current();
  const words = await setting.cli('keys', 'show');
  expect(words.stdout).toMatch(
    /^KEY +RECIPIENTS +ENDPOINTS +CLAIMS +USERS +CONNECTOR KEYS +PAYER KEYS\n/,
  );
  expect(words.stdout).toMatch(new RegExp(`${kid} +current +1 +1 +0 +1 +0 +0`));
  const { stdout } = await setting.cli('keys', 'show', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ current: kid });
  for (const key of Object.values(readKeys(setting.keysFile).seal.keys)) {
    expect(stdout + words.stdout).not.toContain(key.toString('base64url'));
  }
});

test('what is wrong is refused in words', async () => {
  const { refusal } = setting;
  expect(await refusal('keys', 'retire', 'k0')).toMatchObject({ code: 'sealing_key_not_found' });
  const current = await refusal('keys', 'retire', setting.current());
  expect(current).toMatchObject({ code: 'sealing_key_current' });
  expect(await refusal('keys', 'retire')).toMatchObject({ code: 'invalid_usage' });
});

test('a recipient is forgotten by its id, its key holds nothing of it, and it is not sealed anew', async () => {
  const { cli, refusal, deps, stores, current } = setting;
  const id = await setting.recipient();
  const kept = await setting.recipient();
  const forget = async () => JSON.parse((await cli('recipient', 'forget', id, '--json')).stdout);
  const forgotten = await forget();
  expect(forgotten).toMatchObject({ id, last4: '0000', deleted_at: expect.any(String) });
  expect(await forget()).toEqual(forgotten);
  expect(await heldBy(current())).toMatchObject({ recipients: 1 });
  expect(await rotateKeys(deps, false)).toMatchObject({ resealed: 1, remaining: 0 });
  expect(await stores.recipients.get(id)).toMatchObject({ sealed: null, kid: null });
  expect(await opened(kept)).toBe(DETAILS);
  expect(await refusal('recipient', 'forget', 'none')).toMatchObject({
    code: 'recipient_not_found',
  });
});

test('a key of links or marks is rotated at once, and retired once nothing needs it', async () => {
  const { cli, refusal, deps, db, stores, keysFile } = setting;
  const json = async (...args: string[]) => JSON.parse((await cli(...args, '--json')).stdout);
  const before = readKeys(keysFile);
  const links = await json('keys', 'rotate', '--ring', 'pay_token');
  const marks = await json('keys', 'rotate', '--ring', 'fingerprint');
  const after = readKeys(keysFile);
  expect(links).toEqual({ ring: 'pay_token', kid: after.pay_token.current });
  expect(after.pay_token.keys).toMatchObject(before.pay_token.keys);
  expect(marks).toEqual({ ring: 'fingerprint', kid: after.fingerprint.current });
  expect(after.seal).toEqual(before.seal);
  const in_a_minute = new Date(Date.now() + 60_000).toISOString();
  const page = { status: 'awaiting_customer', expires_at: in_a_minute };
  const payments = db.collection<{ _id: string } & Document>('payments');
  await payments.insertOne({ _id: 'p1', ...page, token_hash: 't1' });
  const use = { account_id: 'a', livemode: false, operation: 'createRefund', key: 'k' };
  const { body: fingerprint } = claimMark(followRings(keysFile).fingerprint, use, '{}');
  const rest = { resource_id: 'r1', request: null, request_id: 'r' };
  await stores.idempotency.claim({ ...use, ...rest, fingerprint }, new Date());
  await stores.idempotency.claim(
    { ...use, ...rest, key: 'k0', resource_id: 'r0', fingerprint: 'of-the-first-key' },
    new Date(),
  );
  expect(await json('keys', 'show')).toMatchObject({
    pay_token: {
      current: links.kid,
      keys: [
        { kid: 'first', in_use: 1 },
        { kid: links.kid, in_use: 0 },
      ],
    },
    fingerprint: {
      current: marks.kid,
      keys: [
        { kid: 'first', in_use: 1 },
        { kid: marks.kid, in_use: 1 },
      ],
    },
  });
  for (const ring of LINK_RINGS) {
    expect(await refusal('keys', 'retire', 'first', '--ring', ring)).toMatchObject({
      code: 'sealing_key_in_use',
    });
    const current = readKeys(keysFile)[ring].current;
    await expect(retireLinkKey(deps, ring, current)).rejects.toEqual(
      refused('sealing_key_current'),
    );
  }
  const hour_ago = new Date(Date.now() - 3_600_000);
  await payments.updateOne({ _id: 'p1' }, { $set: { expires_at: hour_ago.toISOString() } });
  await db.collection('idempotency').updateMany({}, { $set: { expires_at: hour_ago } });
  for (const ring of LINK_RINGS) {
    const { current } = readKeys(keysFile)[ring];
    expect(await retireLinkKey(deps, ring, 'first')).toEqual([current]);
    expect(Object.keys(readKeys(keysFile)[ring].keys)).toEqual([current]);
  }
});

test('recipients get rings of their own, which the key file does not open', async () => {
  const { cli, refusal, deps, stores, keysFile, env } = setting;
  const json = async (...args: string[]) => JSON.parse((await cli(...args, '--json')).stdout);
  expect(await refusal('keys', 'split')).toMatchObject({ code: 'keys_dir_missing' });
  const ids = [await setting.recipient(), await setting.recipient()];
  await setting.endpoint('acct_5');
  const keysDir = join(dirname(keysFile), 'rings');
  env['KEYS_DIR'] = keysDir;
  expect(await refusal('keys', 'show')).toMatchObject({ code: 'keys_dir_invalid' });
  const { written } = await json('keys', 'split');
  expect(written).toHaveLength(4);
  expect(await json('keys', 'split')).toEqual({ written: [] });
  const shown = await json('keys', 'show');
  expect(shown.recipients).toEqual({
    sandbox: expect.stringMatching(/^recipients[.]sandbox:k/),
    live: expect.stringMatching(/^recipients[.]live:k/),
  });
  const own = { ...deps, keysDir };
  const { current } = readKeys(keysFile).seal;
  expect(await resealKeys(own)).toEqual({ kid: current, resealed: 2, remaining: 0 });
  const [bank, wrong] = (['sandbox', 'live'] as const).map((environment) =>
    recipientOpener({ KEYS_DIR: keysDir }, [environment]),
  );
  for (const id of ids) {
    const sealed = (await stores.recipients.get(id))?.sealed ?? Sealed.parse('');
    expect(await bank?.open(sealed, recipientOwner(id))).toBe(DETAILS);
    for (const other of [wrong, setting.sealer(), createRecipientSealers(keysDir).sandbox]) {
      await expect(other?.open(sealed, recipientOwner(id))).rejects.toThrow(SealError);
    }
  }
  const first = shown.recipients.sandbox;
  await expect(retireKey(own, first)).rejects.toEqual(refused('sealing_key_current'));
  const rotated = await rotateKeys(own, false, 'sandbox');
  expect(rotated).toEqual({ kid: expect.any(String), resealed: 2, remaining: 0 });
  expect(rotated.kid).not.toBe(first);
  expect((await stores.recipients.get(ids[0] ?? ''))?.kid).toBe(rotated.kid);
  // As after a rotation that was killed between its two files.
  const open = ringPath(keysDir, 'sandbox', 'public');
  const written_last = readFileSync(open, 'utf8');
  for (const again of [() => resealKeys(own), () => retireKey(own, first)]) {
    writeFileSync(open, written_last.replace(rotated.kid, first));
    await again();
    expect(JSON.parse(readFileSync(open, 'utf8'))).toMatchObject({ current: rotated.kid });
  }
  expect((await json('keys', 'show')).recipients.sandbox).toBe(rotated.kid);
  expect(await rotateKeys(own, false)).toMatchObject({ resealed: 1, remaining: 0 });
  delete env['KEYS_DIR'];
});
