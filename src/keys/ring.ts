import { statSync } from 'node:fs';
import { type Keys, readKeys } from '../config';

export type SealingKeys = Keys['seal'];

const KEY_BYTES = 32;

/** Time for which a process may still seal with a key that is no longer current. */
export const LOOK_EVERY_MS = 1_000;

/** Keys that seal and open. */
export interface KeyRing {
  /** Gives the key that seals now. @throws KeyRingError when it can't be known */
  forSealing(): SealingKeys;
  /** Gives the key `kid`, if there is one. */
  forOpening(kid: string): SealingKeys;
}

/** Error of a key file that can't be read; it carries nothing of the file. */
export class KeyRingError extends Error {
  constructor(path: string) {
    super(`The key file ${path} can not be read, so nothing is sealed.`);
    this.name = 'KeyRingError';
  }
}

/** Checks keys. @throws Error when the current one is missing, or one is not 32 bytes */
function checkSealingKeys({ current, keys }: SealingKeys): void {
  for (const [kid, key] of Object.entries(keys)) {
    if (key.length !== KEY_BYTES) throw new Error(`Sealing key "${kid}" is not 32 bytes long.`);
  }
  if (!Object.hasOwn(keys, current)) throw new Error(`There is no sealing key "${current}".`);
}

/** Makes a ring that never changes. @throws Error as `checkSealingKeys` */
export function constantRing(keys: SealingKeys): KeyRing {
  checkSealingKeys(keys);
  return { forSealing: () => keys, forOpening: () => keys };
}

/**
 * Makes a ring that follows a key file. Sealing looks at the file once a second, and refuses when
 * it can't, since its key may be retired by now. Opening uses the keys it has, and reads the file
 * for a key that it has not.
 * @param clock ms, never set back
 * @throws Error when the file is missing, or no key file, at the start
 */
export function followKeys(path: string, clock: () => number = () => performance.now()): KeyRing {
  let lookedAt = clock();
  let stamp = stampOf(path);
  let ring = readRing(path);

  const readAgain = (): void => {
    // The stamp comes first, so that a change in between is read once more.
    const next = stampOf(path);
    ring = readRing(path);
    stamp = next;
  };

  return {
    forSealing: () => {
      const now = clock();
      if (now - lookedAt < LOOK_EVERY_MS) return ring;
      try {
        if (stampOf(path) !== stamp) readAgain();
      } catch {
        throw new KeyRingError(path);
      }
      lookedAt = now;
      return ring;
    },
    forOpening: (kid) => {
      if (Object.hasOwn(ring.keys, kid)) return ring;
      try {
        readAgain();
      } catch {
        // The file can't be read; the ring in hand still opens its own values.
      }
      return ring;
    },
  };
}

function readRing(path: string): SealingKeys {
  const { seal } = readKeys(path);
  checkSealingKeys(seal);
  return seal;
}

/** Stamp of the file: each replacement has another, even within one tick of the clock. */
function stampOf(path: string): string {
  const { mtimeNs, ino, size } = statSync(path, { bigint: true });
  return `${mtimeNs}:${ino}:${size}`;
}
