import { readFileSync, statSync } from 'node:fs';
import { resealKeys, retireKey, rotateKeys, showKeys } from '../../src/cli/keys';
import { readKeys } from '../../src/config';
import { lockKeyFile } from '../../src/keys/file';
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
  expect(lines).toContainEqual(expect.stringContaining('waiting 19 s'));
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
  expect(setting.waits[0]).toBeGreaterThan(10_000);
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
