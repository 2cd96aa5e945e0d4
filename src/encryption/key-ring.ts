import type { KeyObject } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { KEY_BYTES } from './key-file';

/** A process may still use a replaced key for this time. */
export const POLL_EVERY_MS = 1_000;

export class KeyRingError extends Error {
  constructor(path: string) {
    super(`The key file ${path} can not be read, so nothing is encrypted.`);
    this.name = 'KeyRingError';
  }
}

interface FollowedFile<T> {
  /** @throws KeyRingError when the file is unreadable */
  latest(): T;
  readUntil(isSufficient: (content: T) => boolean): T;
}

/**
 * Reads the file again when a check, once a second, finds that it was replaced.
 * @param clock ms, monotonic
 * @throws Error when the file cannot be read or parsed at the start
 */
export function followFile<T>(
  path: string,
  parse: (text: string) => T,
  clock: () => number = () => performance.now(),
): FollowedFile<T> {
  let polledAt = clock();
  let stamp = readStamp(path);
  let content = parse(readFileSync(path, 'utf8'));

  const poll = (): void => {
    // The stamp is read first, so that the next poll sees a change in between.
    const next = readStamp(path);
    if (next === stamp) return;
    content = parse(readFileSync(path, 'utf8'));
    stamp = next;
  };

  return {
    latest: () => {
      const now = clock();
      if (now - polledAt < POLL_EVERY_MS) return content;
      try {
        poll();
      } catch {
        throw new KeyRingError(path);
      }
      polledAt = now;
      return content;
    },
    readUntil: (isSufficient) => {
      if (isSufficient(content)) return content;
      try {
        poll();
      } catch {
        // The keys in memory still decrypt their values.
      }
      return content;
    },
  };
}

function readStamp(path: string): string {
  const { mtimeNs, ino, size } = statSync(path, { bigint: true });
  return `${mtimeNs}:${ino}:${size}`;
}

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
