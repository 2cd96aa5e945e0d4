import { ENVIRONMENTS, type Env, isLive } from '../../domain/environment';
import { DecryptionError, type Encrypted } from '../../encryption/encrypter';
import { RECIPIENT_KEY_RINGS } from '../../encryption/recipient-keys';
import { buildRecipient, recipientOwner } from '../../store/recipients';
import { type CurrentEncrypter, type Encrypters, readKid, sum } from './encrypters';
import { replacePayerKeys } from './payers';
import { type EncryptedStores, VALUE_KINDS } from './values';

interface ReencryptDeps {
  stores: EncryptedStores;
  encrypters: Encrypters;
  now: () => Date;
  progress: (line: string) => void;
}

/** The second pass finds changes made during the first; later ones find secrets rolled since. */
const PASSES_MAX = 10;
const BATCH = 100;

/**
 * Re-encrypts all values that are not encrypted with the current keys. Every write is conditional
 * on the decrypted value, so it can be interrupted and repeated.
 * @returns number of values that were re-encrypted
 */
export async function reencryptAll(deps: ReencryptDeps): Promise<number> {
  const reencrypt = createReencrypt(deps);
  let total = 0;
  for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
    let count = 0;
    for (const environment of ENVIRONMENTS) await writePendingRecipients(deps, environment);
    for (const environment of ENVIRONMENTS) {
      count += await reencryptRecipients(deps, reencrypt, environment);
    }
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
        const next = await reencrypt(seal, value);
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
 * Writes accepted recipients that were never stored. To re-encrypt their idempotency records is not
 * enough: a retry may have read a record earlier, and write the old text.
 */
async function writePendingRecipients(
  { stores: { recipients, idempotency }, encrypters, now, progress }: ReencryptDeps,
  environment: Env,
): Promise<void> {
  const { kid } = encrypters[RECIPIENT_KEY_RINGS[environment]];
  let after = '';
  for (;;) {
    const records = await recipients.listRecordsByOtherKeys(isLive(environment), kid, BATCH, after);
    const last = records.at(-1);
    if (last === undefined) return;
    after = last._id;
    for (const { resource_id, account_id, livemode, request_id, request } of records) {
      const owner = { id: resource_id, account_id, livemode, request_id };
      await recipients.insert(buildRecipient(owner, request, now()));
      await idempotency.markWritten(resource_id);
    }
    progress(`recipients that were still to be written: ${records.length}`);
  }
}

async function reencryptRecipients(
  { stores: { recipients }, encrypters, progress }: ReencryptDeps,
  reencrypt: Reencrypt,
  environment: Env,
): Promise<number> {
  const current = encrypters[RECIPIENT_KEY_RINGS[environment]];
  let after = '';
  let count = 0;
  for (;;) {
    const batch = await recipients.listByOtherKeys(isLive(environment), current.kid, BATCH, after);
    const last = batch.at(-1);
    if (last === undefined) return count;
    after = last._id;
    const writes = batch.map(async ({ _id, sealed: ciphertext }) => {
      const next = await reencrypt(current, { ciphertext, owner: recipientOwner(_id) });
      if (next === undefined) return 0;
      const kid = current.encrypter.getKid(next);
      return (await recipients.reencrypt(_id, ciphertext, next, kid)).modifiedCount;
    });
    count += sum(await Promise.all(writes));
    progress(`recipients re-encrypted: ${count}`);
  }
}

/** Undefined when none of the keys decrypts the value. */
type Reencrypt = (
  current: CurrentEncrypter,
  value: { ciphertext: Encrypted; owner: string },
) => Promise<Encrypted | undefined>;

/** Reports each value that cannot be decrypted once, and leaves it unchanged. */
function createReencrypt({ progress }: ReencryptDeps): Reencrypt {
  const failedOwners = new Set<string>();
  return async ({ encrypter }, { ciphertext, owner }) => {
    try {
      return await encrypter.encrypt(await encrypter.decrypt(ciphertext, owner), owner);
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      if (!failedOwners.has(owner)) progress(`${owner} cannot be decrypted with these keys`);
      failedOwners.add(owner);
      return undefined;
    }
  };
}
