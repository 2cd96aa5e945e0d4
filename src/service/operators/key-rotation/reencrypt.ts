import { toEnv } from '../../../domain/environment';
import { DecryptionError, type Encrypted } from '../../../encryption/encrypter';
import { buildRecipient, recipientOwner } from '../../../store/recipients';
import { type Encrypters, isOutdated, readKid, sum } from './encrypters';
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

/** Safe to interrupt and repeat: every write is conditional on the decrypted value. */
export async function reencryptAll(deps: ReencryptDeps): Promise<number> {
  const reencrypt = createReencrypt(deps);
  let total = 0;
  for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
    let count = 0;
    await writePendingRecipients(deps);
    count += await reencryptRecipients(deps, reencrypt);
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
    const readPage = (after: string) => recipients.listRecordsInGroup(group, BATCH, after);
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

async function reencryptRecipients(
  { stores: { recipients }, encrypters, progress }: ReencryptDeps,
  reencrypt: Reencrypt,
): Promise<number> {
  const { recipients: encrypter } = encrypters;
  const groups = await recipients.listGroups();
  let count = 0;
  for (const group of groups.filter((each) => isOutdated(encrypters, each))) {
    const readPage = (after: string) => recipients.listInGroup(group, BATCH, after);
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

async function* readPages<T extends { _id: string }>(readPage: (after: string) => Promise<T[]>) {
  let after: string | undefined = '';
  while (after !== undefined) {
    const page: T[] = await readPage(after);
    if (page.length > 0) yield page;
    after = page.at(-1)?._id;
  }
}

/** Undefined when no key decrypts the value. */
type Reencrypt = (owner: string, work: () => Promise<Encrypted>) => Promise<Encrypted | undefined>;

/** Reports a value that cannot be decrypted once, and leaves it unchanged. */
function createReencrypt({ progress }: ReencryptDeps): Reencrypt {
  const failedOwners = new Set<string>();
  return async (owner, work) => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      if (!failedOwners.has(owner)) progress(`${owner} cannot be decrypted with these keys`);
      failedOwners.add(owner);
      return undefined;
    }
  };
}
