import { readFileSync, statSync } from 'node:fs';

/** A process may still use a replaced key for this time. */
export const POLL_EVERY_MS = 1_000;

export class KeyRingError extends Error {
  constructor(path: string) {
    super(`The key file ${path} can not be read, so nothing is encrypted.`);
    this.name = 'KeyRingError';
  }
}

export interface FollowedFile<T> {
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
