import { DecryptionError, type Encrypted } from '../../encryption/encrypter';
import type { CurrentEncrypter, Encrypters } from './encrypters';
import type { EncryptedStores } from './values';

export interface ReencryptDeps {
  stores: EncryptedStores;
  encrypters: Encrypters;
  now: () => Date;
  progress: (line: string) => void;
}

/** Undefined when none of the keys decrypts the value. */
export type Reencrypt = (
  current: CurrentEncrypter,
  value: { ciphertext: Encrypted; owner: string },
) => Promise<Encrypted | undefined>;

/** Reports each value that cannot be decrypted once, and leaves it unchanged. */
export function createReencrypt({ progress }: ReencryptDeps): Reencrypt {
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
