import type { KeyObject } from 'node:crypto';
import type { FollowedFile } from './followed-file';

/** Key of 32 bytes, or one part of a key pair on the curve P-256. */
export type Key = Buffer | KeyObject;

export interface EncryptionKeys {
  /** Name of the key that encrypts new values. */
  current: string;
  keys: Record<string, Key>;
}

/** Keys of one purpose. */
export interface KeyRing {
  /** Returns the keys and the name of the current one. @throws KeyRingError when it is unknown */
  forEncryption(): EncryptionKeys;
  /** Returns the keys, including the key `kid` if it exists. */
  forDecryption(kid: string): EncryptionKeys;
}

export function findKey({ keys }: EncryptionKeys, kid: string): Key | undefined {
  return Object.hasOwn(keys, kid) ? keys[kid] : undefined;
}

const KEY_BYTES = 32;

/** Checks keys. @throws Error when the current one is missing, or one is not 32 bytes */
export function checkEncryptionKeys({ current, keys }: EncryptionKeys): void {
  for (const [kid, key] of Object.entries(keys)) {
    if (Buffer.isBuffer(key) && key.length !== KEY_BYTES) {
      throw new Error(`Encryption key "${kid}" is not 32 bytes long.`);
    }
  }
  if (!Object.hasOwn(keys, current)) throw new Error(`There is no encryption key "${current}".`);
}

/** Creates a key ring that never changes. @throws Error as `checkEncryptionKeys` */
export function createStaticKeyRing(keys: EncryptionKeys): KeyRing {
  checkEncryptionKeys(keys);
  return { forEncryption: () => keys, forDecryption: () => keys };
}

/**
 * Creates a key ring that follows a file. It encrypts nothing while the file is unreadable, since the
 * current key may be retired; the keys in memory still decrypt.
 */
export function createKeyRing<T>(
  file: FollowedFile<T>,
  select: (content: T) => EncryptionKeys,
): KeyRing {
  return {
    forEncryption: () => select(file.latest()),
    forDecryption: (kid) =>
      select(file.readUntil((content) => Object.hasOwn(select(content).keys, kid))),
  };
}
