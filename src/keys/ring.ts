import type { KeyObject } from 'node:crypto';
import { type Keys, parseKeys } from '../config';
import { keySource } from './command';
import { type Followed, followSource, KeyRingError } from './source';

/** Key of 32 bytes, or one part of a pair on the curve P-256. */
export type Key = Buffer | KeyObject;

export interface SealingKeys {
  /** Name of the key that is used for what is new. */
  current: string;
  keys: Record<string, Key>;
}

export type RingName = keyof Keys;

const KEY_BYTES = 32;

/** Keys of one purpose. */
export interface KeyRing {
  /** Gives the ring whose current key is used now. @throws KeyRingError when it can't be known */
  forSealing(): SealingKeys;
  /** Gives the ring with the key `kid`, if there is one. */
  forOpening(kid: string): SealingKeys;
}

export type Rings = Record<RingName, KeyRing>;

/** Finds a key of a ring by its name. */
export function keyNamed({ keys }: SealingKeys, kid: string): Key | undefined {
  return Object.hasOwn(keys, kid) ? keys[kid] : undefined;
}

/** Checks keys. @throws Error when the current one is missing, or one is not 32 bytes */
export function checkSealingKeys({ current, keys }: SealingKeys): void {
  for (const [kid, key] of Object.entries(keys)) {
    if (Buffer.isBuffer(key) && key.length !== KEY_BYTES) {
      throw new Error(`Sealing key "${kid}" is not 32 bytes long.`);
    }
  }
  if (!Object.hasOwn(keys, current)) throw new Error(`There is no sealing key "${current}".`);
}

/** Makes a ring that never changes. @throws Error as `checkSealingKeys` */
export function constantRing(keys: SealingKeys): KeyRing {
  checkSealingKeys(keys);
  return { forSealing: () => keys, forOpening: () => keys };
}

/**
 * Makes the ring of the sealing keys, which follows a key file.
 * @param clock ms, never set back
 * @throws Error when the file is missing, or no key file, at the start
 */
export function followKeys(path: string, clock?: () => number): KeyRing {
  return followRings(path, clock).seal;
}

/**
 * Makes the rings of a key file, which follow it. What uses a current key looks at the file once a
 * second. Sealing is refused when it can't be read, since its key may be retired by now; links and
 * fingerprints go on with the keys in hand. Opening uses those too, and reads the file for a key
 * that is not among them.
 * @param clock ms, never set back
 * @param command program that stands for the file; empty for none
 * @throws Error when the file is missing, or no key file, at the start
 */
export function followRings(path: string, clock?: () => number, command?: string): Rings {
  const followed = followSource(keySource(path, command, clock), checkedKeys, clock);
  return {
    seal: ringOf(followed, ({ seal }) => seal),
    pay_token: withKeysInHand(ringOf(followed, ({ pay_token }) => pay_token)),
    fingerprint: withKeysInHand(ringOf(followed, ({ fingerprint }) => fingerprint)),
  };
}

/** Makes the ring that stands in what is followed. */
export function ringOf<T>(followed: Followed<T>, ring: (held: T) => SealingKeys): KeyRing {
  return {
    forSealing: () => ring(followed.latest()),
    forOpening: (kid) => ring(followed.having((held) => Object.hasOwn(ring(held).keys, kid))),
  };
}

/** Makes a ring of which the last known keys do, while the file can't be read. */
function withKeysInHand({ forSealing, forOpening }: KeyRing): KeyRing {
  let last = forSealing();
  return {
    forSealing: () => {
      try {
        last = forSealing();
      } catch (error) {
        if (!(error instanceof KeyRingError)) throw error;
      }
      return last;
    },
    forOpening,
  };
}

function checkedKeys(text: string): Keys {
  const keys = parseKeys(text);
  for (const ring of Object.values(keys)) checkSealingKeys(ring);
  return keys;
}
