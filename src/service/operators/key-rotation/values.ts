import { statSync } from 'node:fs';
import type { ObjectId } from 'mongodb';
import { describeError, OperationalError } from '../../../base/errors';
import { ENVIRONMENTS, type Env, isLive } from '../../../domain/environment';
import { ServiceError } from '../../../domain/errors';
import { DecryptionError, type Encrypted, type Encrypter } from '../../../encryption/encrypter';
import { lockKeyFile } from '../../../encryption/key-file';
import { POLL_EVERY_MS } from '../../../encryption/key-ring';
import { keyRingPath, listHolders } from '../../../encryption/recipient-pairs';
import type { Connectors } from '../../../routing';
import type { Stores } from '../../../store';
import { type AccountDocument, type PayerKeys, payerKeyOwner } from '../../../store/accounts';
import type { Audit } from '../../../store/audit';
import { CACHE_MS } from '../../../store/cache';
import { secretOwner } from '../../../store/endpoints';
import { connectorKeyOwner, type KeyOwner } from '../../../store/keys';
import { totpOwner } from '../../../store/users';
import {
  createPayerCipher,
  isCurrent,
  newPayerKey,
  type PayerCipher,
  readPayers,
  type StoredPayer,
} from '../../money/payers';

/**
 * Two attempts, each with 2 s for a connection, 2 s to select a server and 5 s for its response.
 * @see src/base/mongo.ts
 */
const WRITE_MS_MAX = 18_000;

/** Time in which every process reads the changed file, and stores or drops earlier values. */
const SETTLE_MS = POLL_EVERY_MS + WRITE_MS_MAX;

export const INSTALLATION = { account_id: null, livemode: null } as const;

export interface KeyFileDeps {
  audit: Audit;
  keysFile: string;
  keysDir: string;
  /** Says who may pay a recipient, as in the API. */
  connectors: Pick<Connectors, 'listConnectors'>;
  now: () => Date;
  wait: (ms: number) => Promise<void>;
  progress: (line: string) => void;
}

/** Waits until no process encrypts with an earlier key. */
export async function waitUntilSettled(deps: KeyFileDeps): Promise<void> {
  const { keysFile, keysDir } = deps;
  const publicFiles = listHolders(keysDir).map((each) => keyRingPath(keysDir, each, 'public'));
  const changedAt = Math.max(...[keysFile, ...publicFiles].map((path) => statSync(path).mtimeMs));
  await waitSince(deps, changedAt, SETTLE_MS);
}

/** @param changedAt ms since the epoch */
async function waitSince(
  { now, wait, progress }: Pick<KeyFileDeps, 'now' | 'wait' | 'progress'>,
  changedAt: number,
  settleMs: number,
): Promise<void> {
  const age = Math.max(0, now().getTime() - changedAt);
  const remainingMs = Math.ceil(settleMs - age);
  if (remainingMs <= 0) return;
  progress(
    `waiting ${Math.ceil(remainingMs / 1_000)} s: until then a running process may still store values ` +
      'that it encrypted with earlier keys',
  );
  await wait(remainingMs);
}

/** @throws ServiceError `keys_file_busy` while another process changes the keys */
export async function withKeyFileLock<T>(
  { keysFile }: Pick<KeyFileDeps, 'keysFile'>,
  work: () => Promise<T>,
): Promise<T> {
  const release = changeKeyFile(() => lockKeyFile(keysFile));
  try {
    return await work();
  } finally {
    release();
  }
}

/** @throws ServiceError `keys_file_busy`, `keys_file_not_written` */
export function changeKeyFile<T>(change: () => T): T {
  try {
    return change();
  } catch (error) {
    if (error instanceof OperationalError) throw new ServiceError('keys_file_busy', error.message);
    const message = `The key file cannot be changed: ${describeError(error)}`;
    throw new ServiceError('keys_file_not_written', message);
  }
}

interface EncryptedValue {
  ciphertext: Encrypted;
  /** Bound to the ciphertext. */
  owner: string;
  /** Writes only if the value has not changed. @param kid key of `next` */
  replace: (next: Encrypted, kid: string) => Promise<{ modifiedCount: number }>;
}

const BATCH = 100;

export async function* readPages<Id, T extends { _id: Id }>(
  readPage: (after: Id | undefined) => Promise<T[]>,
): AsyncGenerator<T[]> {
  let after: Id | undefined;
  for (;;) {
    const page = await readPage(after);
    if (page.length > 0) yield page;
    after = page.at(-1)?._id;
    if (after === undefined) return;
  }
}

export async function* readAll<Id, T extends { _id: Id }>(
  readPage: (after: Id | undefined) => Promise<T[]>,
): AsyncGenerator<T> {
  for await (const page of readPages(readPage)) yield* page;
}

interface KeyedAccount {
  account: AccountDocument;
  env: Env;
  owner: KeyOwner;
  keys: PayerKeys;
}

async function* listPayerKeys({
  accounts,
}: Pick<Stores, 'accounts'>): AsyncGenerator<KeyedAccount> {
  const readPage = (after = '') => accounts.page(after, BATCH);
  for await (const account of readAll(readPage)) {
    for (const env of ENVIRONMENTS) {
      const keys = account.payer_keys?.[env];
      const owner = { account_id: account._id, livemode: isLive(env) };
      if (keys !== undefined) yield { account, env, owner, keys };
    }
  }
}

/** `count` is a field of `KeyCounts`. */
export const VALUE_KINDS = [
  {
    count: 'endpoints',
    label: 'signing secrets',
    read: async function* ({ endpoints }: Stores) {
      const readPage = (after: ObjectId | undefined) => endpoints.page(BATCH, after);
      for await (const endpoint of readAll(readPage)) {
        yield endpoint.secrets.map(({ ciphertext }) => ({
          ciphertext,
          owner: secretOwner(endpoint),
          replace: (next: Encrypted) => endpoints.reencryptSecret(endpoint._id, ciphertext, next),
        }));
      }
    },
  },
  {
    count: 'users',
    label: 'second factors',
    read: async function* ({ users }: Stores) {
      const readPage = (after = '') => users.withTotp(after, BATCH);
      for await (const { _id, totp, totp_offered } of readAll(readPage)) {
        const fields = { 'totp.ciphertext': totp?.ciphertext, totp_offered };
        yield (['totp.ciphertext', 'totp_offered'] as const).flatMap((field) => {
          const before = fields[field];
          if (!before) return [];
          const replace = (next: Encrypted) =>
            users.reencryptTotp(_id, field, { before, ciphertext: next });
          return [{ ciphertext: before, owner: totpOwner(_id), replace }];
        });
      }
    },
  },
  {
    count: 'connector_keys',
    label: 'connector keys',
    read: async function* ({ connectorKeys }: Stores) {
      const readPage = (after = '') => connectorKeys.page(after, BATCH);
      for await (const { _id, ciphertext } of readAll(readPage)) {
        const replace = (next: Encrypted) => connectorKeys.reencrypt(_id, ciphertext, next);
        yield [{ ciphertext, owner: connectorKeyOwner(_id), replace }];
      }
    },
  },
  {
    count: 'payer_keys',
    label: 'keys of payers',
    read: async function* (stores: Stores) {
      for await (const { env, owner, keys } of listPayerKeys(stores)) {
        yield [keys, ...(keys.earlier ?? [])].map(({ ciphertext }) => ({
          ciphertext,
          owner: payerKeyOwner(owner),
          replace: (next: Encrypted, kid: string) =>
            stores.accounts.reencryptPayerKey(owner.account_id, env, ciphertext, {
              ciphertext: next,
              kid,
            }),
        }));
      }
    },
  },
] as const satisfies readonly {
  count: string;
  label: string;
  read: (stores: Stores) => AsyncGenerator<EncryptedValue[]>;
}[];

/** Time in which every process reads the account again, and stores its earlier payers. */
const PAYERS_SETTLE_MS = CACHE_MS + WRITE_MS_MAX;

/** A request may decrypt a payer that it read before the re-encryption. */
const REQUEST_MS_MAX = 10_000;

/**
 * Replaces each data key that an earlier key encrypts: that key may have leaked with a backup, and
 * the data key with it. The replaced key still decrypts.
 */
export async function replacePayerKeys(
  stores: Stores,
  { encrypter, kid }: { encrypter: Encrypter; kid: string },
  now: () => Date,
): Promise<void> {
  for await (const { env, owner, keys } of listPayerKeys(stores)) {
    if (keys.kid === kid) continue;
    const next = await newPayerKey(encrypter, owner);
    const at = now().toISOString();
    await stores.accounts.replacePayerKey(owner.account_id, env, keys.ciphertext, next, at);
  }
}

export async function countReplacedKeys(stores: Stores): Promise<number> {
  return (await listReplaced(stores)).length;
}

async function listReplaced(stores: Stores): Promise<KeyedAccount[]> {
  const replaced: KeyedAccount[] = [];
  for await (const keyed of listPayerKeys(stores)) {
    if (keyed.keys.earlier !== undefined) replaced.push(keyed);
  }
  return replaced;
}

interface PayerDeps extends Pick<KeyFileDeps, 'now' | 'wait' | 'progress'> {
  stores: Stores;
}

/**
 * Re-encrypts what replaced data keys encrypted, and removes these. Safe to interrupt and repeat:
 * every write is conditional on the decrypted payer.
 */
export async function reencryptPayers(deps: PayerDeps, encrypter: Encrypter): Promise<number> {
  const replaced = await listReplaced(deps.stores);
  if (replaced.length === 0) return 0;
  const earlier = replaced.flatMap(({ keys }) => keys.earlier ?? []);
  const latest = earlier.reduce(
    (last, { replaced_at }) => Math.max(last, Date.parse(replaced_at)),
    0,
  );
  await waitSince(deps, latest, PAYERS_SETTLE_MS);
  const cipher = createPayerCipher(encrypter);
  let count = 0;
  const complete: KeyedAccount[] = [];
  for (const keyed of replaced) {
    const result = await reencryptAccount(deps, cipher, keyed);
    count += result.count;
    if (result.failedCount === 0) complete.push(keyed);
  }
  deps.progress(`payers re-encrypted: ${count}`);
  await deps.wait(REQUEST_MS_MAX);
  for (const { env, owner, keys } of complete) {
    await deps.stores.accounts.removeEarlierPayerKeys(owner.account_id, env, keys.ciphertext);
  }
  return count;
}

async function reencryptAccount(
  { stores, progress }: PayerDeps,
  cipher: PayerCipher,
  { account, env, owner, keys }: KeyedAccount,
): Promise<{ count: number; failedCount: number }> {
  let count = 0;
  let failedCount = 0;
  const reencrypt = async (payer: StoredPayer): Promise<void> => {
    const { _id, customer, isWritten } = payer;
    if (customer.ciphertext === null || isCurrent(keys, customer.ciphertext)) return;
    try {
      const { reference: _reference, ...names } = await cipher.read(payer, keys);
      const next = await cipher.encryptNames(payer, names, keys);
      const store = isWritten ? stores.payments : stores.idempotency;
      count += (await store.reencryptPayer(_id, customer.ciphertext, next)).modifiedCount;
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      progress(`the payer of ${_id} cannot be decrypted with these keys`);
      failedCount += 1;
    }
  };
  for await (const payers of readPayers(stores, owner, account.payers_redacted_to?.[env])) {
    await Promise.all(payers.map(reencrypt));
  }
  return { count, failedCount };
}
