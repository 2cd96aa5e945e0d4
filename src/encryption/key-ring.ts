import type { KeyObject } from 'node:crypto';
import type { FollowedFile } from './followed-file';
import { KEY_BYTES } from './random-key';

/** 32 bytes, or one part of a key pair on P-256. */
export type Key = Buffer | KeyObject;

export interface EncryptionKeys {
  current: string;
  keys: Record<string, Key>;
}

export interface KeyRing {
  /** @throws KeyRingError when the current key is unknown */
  forEncryption(): EncryptionKeys;
  /** Reads the file again when `kid` is unknown. */
  forDecryption(kid: string): EncryptionKeys;
}

export function findKey({ keys }: EncryptionKeys, kid: string): Key | undefined {
  return Object.hasOwn(keys, kid) ? keys[kid] : undefined;
}

/** @throws Error when the current key is missing, or one is not 32 bytes */
export function checkEncryptionKeys({ current, keys }: EncryptionKeys): void {
  for (const [kid, key] of Object.entries(keys)) {
    if (Buffer.isBuffer(key) && key.length !== KEY_BYTES) {
      throw new Error(`Encryption key "${kid}" is not 32 bytes long.`);
    }
  }
  if (!Object.hasOwn(keys, current)) throw new Error(`There is no encryption key "${current}".`);
}

/** @throws Error as `checkEncryptionKeys` */
export function createStaticKeyRing(keys: EncryptionKeys): KeyRing {
  checkEncryptionKeys(keys);
  return { forEncryption: () => keys, forDecryption: () => keys };
}

/** Refuses to encrypt while the file is unreadable: the current key may be retired. */
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
