import { DecryptionError, type Encrypter } from '../../../encryption/encrypter';
import { CACHE_MS } from '../../../store/cache';
import {
  createPayerCipher,
  isCurrent,
  newPayerKey,
  type PayerCipher,
  readPayers,
  type StoredPayer,
} from '../../money/payers';
import { type KeyFileDeps, WRITE_MS_MAX, waitSince } from './changes';
import type { CurrentEncrypter } from './encrypters';
import { type EncryptedStores, type KeyedAccount, listPayerKeys } from './values';

/** Time in which every process reads the account again, and stores its earlier payers. */
const SETTLE_MS = CACHE_MS + WRITE_MS_MAX;

/** A request may decrypt a payer that it read before the re-encryption. */
const REQUEST_MS_MAX = 10_000;

/**
 * Replaces each data key that an earlier key encrypts: that key may have leaked with a backup, and
 * the data key with it. The replaced key still decrypts.
 */
export async function replacePayerKeys(
  stores: EncryptedStores,
  { encrypter, kid }: CurrentEncrypter,
  now: () => Date,
): Promise<void> {
  for await (const { env, owner, keys } of listPayerKeys(stores)) {
    if (keys.kid === kid) continue;
    const next = await newPayerKey(encrypter, owner);
    const at = now().toISOString();
    await stores.accounts.replacePayerKey(owner.account_id, env, keys.ciphertext, next, at);
  }
}

export async function countReplacedKeys(stores: EncryptedStores): Promise<number> {
  return (await listReplaced(stores)).length;
}

async function listReplaced(stores: EncryptedStores): Promise<KeyedAccount[]> {
  const replaced: KeyedAccount[] = [];
  for await (const keyed of listPayerKeys(stores)) {
    if (keyed.keys.earlier !== undefined) replaced.push(keyed);
  }
  return replaced;
}

interface PayerDeps extends Pick<KeyFileDeps, 'now' | 'wait' | 'progress'> {
  stores: EncryptedStores;
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
  await waitSince(deps, latest, SETTLE_MS);
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
