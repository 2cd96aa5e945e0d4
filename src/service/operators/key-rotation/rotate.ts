import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { ENVIRONMENTS, toEnv } from '../../../domain/environment';
import { ServiceError } from '../../../domain/errors';
import { createAuditKeys, listUnwrittenAuditKeys } from '../../../encryption/audit-keys';
import { DecryptionError, type Encrypted } from '../../../encryption/encrypter';
import { addKey, removeKey } from '../../../encryption/key-file';
import {
  addPair,
  createRecipientKeyRing,
  getHolder,
  getKeyRingName,
  keyRingPath,
  publishPairs,
  removePair,
} from '../../../encryption/recipient-pairs';
import { listPayoutConnectors } from '../../../routing';
import type { Stores } from '../../../store';
import { evidenceOwner } from '../../../store/disputes';
import { buildRecipient, recipientOwner } from '../../../store/recipients';
import { withAuditLine } from '../audit/log';
import {
  countByKey,
  countOutdated,
  createEncrypters,
  type Encrypters,
  findHolder,
  findKeyRingName,
  isOutdated,
  type KeyRingName,
  listEvidence,
  readKid,
  sum,
  ZERO_COUNTS,
} from './encrypters';
import {
  changeKeyFile,
  countReplacedKeys,
  INSTALLATION,
  type KeyFileDeps,
  readPages,
  reencryptPayers,
  replacePayerKeys,
  VALUE_KINDS,
  waitUntilSettled,
  withKeyFileLock,
} from './values';

export interface KeyDeps extends KeyFileDeps {
  stores: Stores;
}

export interface ReencryptionResult {
  kid: string;
  resealed: number;
  /** 0 when the rotation is complete. */
  remaining: number;
}

/**
 * Creates only what is missing.
 * @returns paths of written files
 * @throws ServiceError `keys_file_busy`, `keys_file_not_written`
 */
export async function createPairs({
  audit,
  keysFile,
  keysDir,
  connectors,
  now,
}: Omit<KeyFileDeps, 'wait' | 'progress'>): Promise<string[]> {
  return await withKeyFileLock({ keysFile }, async () => {
    const written = changeKeyFile(() => listUnwrittenAuditKeys(keysDir));
    // Signs the lines that follow.
    changeKeyFile(() => createAuditKeys(keysDir, now(), ['command_line']));
    const create = async (target: string, isMissing: boolean, write: () => string[]) => {
      const act = async () => changeKeyFile(write);
      const change = { act: 'keys.rotated', ...INSTALLATION, target } as const;
      return isMissing ? await withAuditLine(audit, change, act) : await act();
    };
    const names = written.map((path) => basename(path)).join(', ');
    await create(names, written.length > 0, () => createAuditKeys(keysDir, now()));
    for (const holder of [...ENVIRONMENTS, ...listPayoutConnectors(connectors).map(getHolder)]) {
      const isMissing = !existsSync(keyRingPath(keysDir, holder, 'private'));
      const paths = await create(getKeyRingName(holder), isMissing, () =>
        createRecipientKeyRing(keysDir, holder, now()),
      );
      written.push(...paths);
    }
    return written;
  });
}

export async function showKeys(deps: KeyDeps) {
  const encrypters = createEncrypters(deps);
  const countsByKey = await countByKey(deps.stores, encrypters);
  const keyRings = [...encrypters.keys];
  const ownKids = keyRings.flatMap(([, { kids }]) => kids);
  const current = keyRings.flatMap(([name, { current }]) => {
    const holder = findHolder(name);
    return holder === undefined ? [] : [[holder, current] as const];
  });
  const kids = new Set([...ownKids, ...countsByKey.keys()]);
  return {
    current: encrypters.seal.kid,
    recipients: Object.fromEntries(current),
    keys: [...kids].map((kid) => ({ kid, ...(countsByKey.get(kid) ?? ZERO_COUNTS) })),
  };
}

/**
 * @param force start even if an earlier rotation is unfinished
 * @throws ServiceError `rotation_unfinished`, `keys_file_busy`, `keys_file_not_written`
 */
export async function rotateKeys(deps: KeyDeps, force: boolean, name: KeyRingName = 'seal') {
  return await withKeyFileLock(deps, async () => {
    const encrypters = createEncrypters(deps);
    const remaining = await countAllRemaining(deps.stores, encrypters);
    if (remaining > 0 && !force) {
      throw new ServiceError(
        'rotation_unfinished',
        `The last rotation is not complete: other keys than the current ones still hold ${remaining} ` +
          'values. `keys reseal` continues it.',
      );
    }
    const target = name === 'seal' ? null : name;
    const before = { current: findKeyRing(encrypters, name).current };
    const change = { act: 'keys.rotated', ...INSTALLATION, target, before } as const;
    const holder = findHolder(name);
    const add = async () =>
      changeKeyFile(() =>
        holder === undefined
          ? addKey(deps.keysFile, deps.now())
          : addPair(deps.keysDir, holder, deps.now()),
      );
    const kid = await withAuditLine(deps.audit, change, add, (current) => ({ current }));
    deps.progress(`${kid} is the current key`);
    return { ...(await reencrypt(deps)), kid };
  });
}

/** @throws ServiceError `keys_file_busy` */
export async function continueRotation(deps: KeyDeps): Promise<ReencryptionResult> {
  return await withKeyFileLock(deps, () => reencrypt(deps));
}

/**
 * Removes a key that no value needs.
 * @returns the others of its key ring
 * @throws ServiceError `sealing_key_not_found`, `sealing_key_current`, `sealing_key_in_use`,
 * `keys_file_busy`, `keys_file_not_written`
 */
export async function retireKey(deps: KeyDeps, kid: string): Promise<string[]> {
  return await withKeyFileLock(deps, async () => {
    const name = findKeyRingName(kid);
    const { current, kids } = findKeyRing(createEncrypters(deps), name);
    if (!kids.includes(kid)) {
      throw new ServiceError('sealing_key_not_found', `There is no key ${kid} in the key files.`);
    }
    if (kid === current) {
      const message = `${kid} is the current key: \`keys rotate --ring ${name}\` creates another one.`;
      throw new ServiceError('sealing_key_current', message);
    }
    finishPairs(deps);
    await refuseInUse(deps, kid);
    await waitUntilSettled(deps);
    await refuseInUse(deps, kid);
    const change = { act: 'keys.retired', ...INSTALLATION, target: kid } as const;
    const holder = findHolder(name);
    const remove = async () =>
      changeKeyFile(() =>
        holder === undefined
          ? removeKey(deps.keysFile, kid)
          : removePair(deps.keysDir, holder, kid),
      );
    await withAuditLine(deps.audit, change, remove);
    return kids.filter((other) => other !== kid);
  });
}

function findKeyRing({ keys }: Encrypters, name: KeyRingName) {
  const keyRing = keys.get(name);
  if (keyRing !== undefined) return keyRing;
  const message = `KEYS_DIR has no ${name}: \`keys split\` creates those that LIVE_CONNECTORS needs.`;
  throw new ServiceError('keys_dir_invalid', message);
}

async function refuseInUse(deps: KeyDeps, kid: string): Promise<void> {
  const counts = (await countByKey(deps.stores, createEncrypters(deps))).get(kid);
  if (counts === undefined) return;
  throw new ServiceError(
    'sealing_key_in_use',
    `${kid} still holds ${counts.recipients} recipients, ${counts.endpoints} webhook endpoints, ` +
      `${counts.claims} recipients not written yet, ${counts.users} second factors, ` +
      `${counts.connector_keys} connector keys, ${counts.payer_keys} keys of payers and evidence of ` +
      `${counts.evidence} disputes. ` +
      '`keys reseal` moves them to the current key.',
  );
}

/** A rotation may have stopped between its two files. */
function finishPairs({ keysDir }: KeyDeps): void {
  changeKeyFile(() => publishPairs(keysDir));
}

async function countAllRemaining(stores: Stores, encrypters: Encrypters): Promise<number> {
  return (await countOutdated(stores, encrypters)) + (await countReplacedKeys(stores));
}

async function reencrypt(deps: KeyDeps): Promise<ReencryptionResult> {
  finishPairs(deps);
  await waitUntilSettled(deps);
  const { stores, now, progress } = deps;
  const encrypters = createEncrypters(deps);
  const values = await reencryptAll({ stores, encrypters, now, progress });
  const resealed = values + (await reencryptPayers(deps, encrypters.seal.encrypter));
  return {
    kid: encrypters.seal.kid,
    resealed,
    remaining: await countAllRemaining(stores, encrypters),
  };
}

interface ReencryptDeps {
  stores: Stores;
  encrypters: Encrypters;
  now: () => Date;
  progress: (line: string) => void;
}

/** The second pass finds changes made during the first; later ones find secrets rolled since. */
const PASSES_MAX = 10;
const BATCH = 100;

/** Safe to interrupt and repeat: every write is conditional on the decrypted value. */
async function reencryptAll(deps: ReencryptDeps): Promise<number> {
  const failedOwners = new Set<string>();
  // Reports a value that cannot be decrypted once, and leaves it unchanged.
  const reencrypt: Reencrypt = (owner, work) =>
    work().catch((error: unknown) => {
      if (!(error instanceof DecryptionError)) throw error;
      if (!failedOwners.has(owner)) deps.progress(`${owner} cannot be decrypted with these keys`);
      failedOwners.add(owner);
      return undefined;
    });
  let total = 0;
  for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
    let count = 0;
    await writePendingRecipients(deps);
    count += await reencryptRecipients(deps, reencrypt);
    count += await reencryptEvidence(deps, reencrypt);
    await replacePayerKeys(deps.stores, deps.encrypters.seal, deps.now);
    count += await reencryptValues(deps, reencrypt);
    if (count === 0) break;
    total += count;
  }
  return total;
}

async function reencryptValues(
  { stores, encrypters: { seal }, progress }: ReencryptDeps,
  reencrypt: Reencrypt,
): Promise<number> {
  let total = 0;
  for (const { label, read } of VALUE_KINDS) {
    let count = 0;
    for await (const values of read(stores)) {
      for (const value of values) {
        if (readKid(seal, value.ciphertext) === seal.kid) continue;
        const { ciphertext, owner } = value;
        const next = await reencrypt(owner, async () =>
          seal.encrypter.encrypt(await seal.encrypter.decrypt(ciphertext, owner), owner),
        );
        if (next === undefined) continue;
        count += (await value.replace(next, seal.encrypter.getKid(next))).modifiedCount;
      }
    }
    if (count > 0) progress(`${label} re-encrypted: ${count}`);
    total += count;
  }
  return total;
}

/**
 * Writes accepted recipients that were never stored. Re-encrypting their records is not enough: a
 * retry may have read a record earlier, and write the old text.
 */
async function writePendingRecipients({
  stores: { recipients, idempotency },
  encrypters,
  now,
  progress,
}: ReencryptDeps): Promise<void> {
  const groups = await recipients.listRecordGroups();
  for (const group of groups.filter((each) => isOutdated(encrypters, each))) {
    const readPage = (after = '') => recipients.listRecordsInGroup(group, BATCH, after);
    for await (const records of readPages(readPage)) {
      for (const { resource_id, account_id, livemode, request_id, request } of records) {
        const owner = { id: resource_id, account_id, livemode, request_id };
        await recipients.insert(buildRecipient(owner, request, now()));
        await idempotency.markWritten(resource_id);
      }
      progress(`recipients that were still to be written: ${records.length}`);
    }
  }
}

async function reencryptEvidence(
  { stores, encrypters: { recipients: encrypter }, progress }: ReencryptDeps,
  reencrypt: Reencrypt,
): Promise<number> {
  let count = 0;
  for await (const { _id, evidence, livemode, connector } of listEvidence(stores)) {
    const { ciphertext = null, kid } = evidence ?? {};
    const environment = toEnv(livemode);
    if (ciphertext === null || kid === encrypter.getCurrentKidFor(environment, connector)) continue;
    const owner = evidenceOwner(_id);
    const next = await reencrypt(owner, async () => {
      const text = await encrypter.decrypt(ciphertext, owner);
      return await encrypter.encryptFor(environment, connector, { text, owner });
    });
    if (next === undefined) continue;
    const change = { ciphertext: next, kid: encrypter.getKid(next) };
    count += (await stores.disputes.reencryptEvidence(_id, ciphertext, change)).modifiedCount;
  }
  if (count > 0) progress(`evidence re-encrypted: ${count}`);
  return count;
}

async function reencryptRecipients(
  { stores: { recipients }, encrypters, progress }: ReencryptDeps,
  reencrypt: Reencrypt,
): Promise<number> {
  const { recipients: encrypter } = encrypters;
  const groups = await recipients.listGroups();
  let count = 0;
  for (const group of groups.filter((each) => isOutdated(encrypters, each))) {
    const readPage = (after = '') => recipients.listInGroup(group, BATCH, after);
    for await (const batch of readPages(readPage)) {
      const writes = batch.map(async ({ _id, livemode, ciphertext, ...facts }) => {
        const owner = recipientOwner(_id);
        const next = await reencrypt(owner, async () => {
          const text = await encrypter.decrypt(ciphertext, owner);
          return await encrypter.encrypt(toEnv(livemode), facts, { text, owner });
        });
        if (next === undefined) return 0;
        const kid = encrypter.getKid(next);
        return (await recipients.reencrypt(_id, ciphertext, next, kid)).modifiedCount;
      });
      count += sum(await Promise.all(writes));
      progress(`recipients re-encrypted: ${count}`);
    }
  }
  return count;
}

/** Undefined when no key decrypts the value. */
type Reencrypt = (owner: string, work: () => Promise<Encrypted>) => Promise<Encrypted | undefined>;
