import { readKid } from './counts';
import { reencryptRecipients, writePendingRecipients } from './recipients';
import { createReencrypt, type Reencrypt, type ReencryptDeps } from './reencrypt-value';
import { VALUE_KINDS } from './values';

/** The second pass finds changes made during the first; later ones find secrets rolled since. */
const PASSES_MAX = 10;

/**
 * Re-encrypts all values that are not encrypted with the current keys. Every write is conditional
 * on the decrypted value, so it can be interrupted and repeated.
 * @returns number of values that were re-encrypted
 */
export async function reencryptAll(deps: ReencryptDeps): Promise<number> {
  const reencrypt = createReencrypt(deps);
  let total = 0;
  for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
    await writePendingRecipients(deps);
    const count =
      (await reencryptRecipients(deps, reencrypt)) + (await reencryptValues(deps, reencrypt));
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
