import { readFileSync, statSync } from 'node:fs';

/** Time for which a process may still use a key that is no longer current. */
export const POLL_EVERY_MS = 1_000;

/** Error of a key file that can't be read; it quotes nothing of the file. */
export class KeyRingError extends Error {
  constructor(path: string) {
    super(`The key file ${path} can not be read, so nothing is encrypted.`);
    this.name = 'KeyRingError';
  }
}

export interface FollowedFile<T> {
  /** Returns the content, at most one second old. @throws KeyRingError when the file is unreadable */
  latest(): T;
  /** Returns the content in memory, or reads the file first if that is not sufficient. */
  readUntil(isSufficient: (content: T) => boolean): T;
}

/**
 * Follows a file: checks once a second whether it was replaced, and reads it only then.
 * @param clock ms, monotonic
 * @throws Error when the file can't be read or parsed at the start
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
    // The stamp is read first: the next poll then notices a change in between.
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
        // The file is unreadable, but the keys in memory still decrypt their values.
      }
      return content;
    },
  };
}

/** Text that differs after each replacement, even within one tick of the clock. */
function readStamp(path: string): string {
  const { mtimeNs, ino, size } = statSync(path, { bigint: true });
  return `${mtimeNs}:${ino}:${size}`;
}
