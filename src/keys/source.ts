import { readFileSync, statSync } from 'node:fs';

/** Place that rings come from: a file, or a program that asks a KMS. */
export interface KeySource {
  /** Name for messages, which tells nothing of the keys. */
  name: string;
  /** Gives another text whenever the content may be another. @throws Error where it is gone */
  stamp(): string;
  /** @throws Error where it can't be read */
  read(): string;
  /** Makes sure, for a key that is not in hand, that the content is new. @throws Error where it can't */
  refresh?(): void;
}

/** Makes the source of a file: each replacement has another stamp, even within one tick of the clock. */
export function fileSource(path: string): KeySource {
  return {
    name: `key file ${path}`,
    stamp: () => {
      const { mtimeNs, ino, size } = statSync(path, { bigint: true });
      return `${mtimeNs}:${ino}:${size}`;
    },
    read: () => readFileSync(path, 'utf8'),
  };
}

/** Time for which a process may still use a key that is no longer current. */
export const LOOK_EVERY_MS = 1_000;

/** Error of keys that can't be read; it carries nothing of them. */
export class KeyRingError extends Error {
  constructor(name: string) {
    super(`The ${name} can not be read, so nothing is sealed.`);
    this.name = 'KeyRingError';
  }
}

/** Content of a source, as it changes. */
export interface Followed<T> {
  /** Gives what the source held a second ago or later. @throws KeyRingError when it can't be known */
  latest(): T;
  /** Gives what is in hand; where that does not suffice, the source is read for more. */
  having(suffices: (held: T) => boolean): T;
}

/**
 * Follows a source: it is looked at once a second, and read where its stamp is another.
 * @param clock ms, never set back
 * @throws Error when the source can't be read or parsed at the start
 */
export function followSource<T>(
  source: KeySource,
  parse: (text: string) => T,
  clock: () => number = () => performance.now(),
): Followed<T> {
  let lookedAt = clock();
  let stamp = source.stamp();
  let held = parse(source.read());

  const look = (): void => {
    // The stamp comes first, so that a change in between is read once more.
    const next = source.stamp();
    if (next === stamp) return;
    held = parse(source.read());
    stamp = next;
  };

  return {
    latest: () => {
      const now = clock();
      if (now - lookedAt < LOOK_EVERY_MS) return held;
      try {
        look();
      } catch {
        throw new KeyRingError(source.name);
      }
      lookedAt = now;
      return held;
    },
    having: (suffices) => {
      if (suffices(held)) return held;
      try {
        source.refresh?.();
        look();
      } catch {
        // The source can't be read; the ring in hand still opens its own values.
      }
      return held;
    },
  };
}
