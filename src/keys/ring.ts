import { statSync } from 'node:fs';
import { type Keys, readKeys } from '../config';

export type SealingKeys = Keys['seal'];

const KEY_BYTES = 32;

/** How long a process may go on sealing with a key that is current no more. */
export const LOOK_EVERY_MS = 1_000;

/** The keys that seal and open. */
export interface KeyRing {
  /** With the key that seals now. @throws KeyRingError when that can't be known */
  forSealing(): SealingKeys;
  /** With the key `kid`, if there is one. */
  forOpening(kid: string): SealingKeys;
}

/** The key file can't be read. Nothing of what stands in it. */
export class KeyRingError extends Error {
  constructor(path: string) {
    super(`The key file ${path} can not be read, so nothing is sealed.`);
    this.name = 'KeyRingError';
  }
}

/** @throws Error when the ring lacks its current key or holds one that is not 32 bytes. */
export function checkSealingKeys({ current, keys }: SealingKeys): void {
  for (const [kid, key] of Object.entries(keys)) {
    if (key.length !== KEY_BYTES) throw new Error(`Sealing key "${kid}" is not 32 bytes long.`);
  }
  if (!Object.hasOwn(keys, current)) throw new Error(`There is no sealing key "${current}".`);
}

/** Keys that never change. @throws Error as `checkSealingKeys` */
export function constantRing(keys: SealingKeys): KeyRing {
  checkSealingKeys(keys);
  return { forSealing: () => keys, forOpening: () => keys };
}

/**
 * The ring of a key file, as it changes. Sealing looks at the file once a second: with a ring that
 * it can't confirm it would seal with a key that may be retired by now, so it refuses. Opening goes
 * on with the keys it has, and reads the file for one that it has not.
 * @param clock ms, never set back
 * @throws Error when the file is missing or no key file at the start
 */
export function followKeys(path: string, clock: () => number = () => performance.now()): KeyRing {
  let lookedAt = clock();
  let stamp = stampOf(path);
  let ring = readRing(path);

  const readAgain = (): void => {
    // The stamp first: what changes in between is read once more.
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
        // Not opened, then; the ring in hand still opens what it can.
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

/** Another one for every replacement, also within one tick of the file system's clock. */
function stampOf(path: string): string {
  const { mtimeNs, ino, size } = statSync(path, { bigint: true });
  return `${mtimeNs}:${ino}:${size}`;
}
