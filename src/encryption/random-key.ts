import { randomBytes } from 'node:crypto';

export const KEY_BYTES = 32;

export const NOT_RANDOM =
  'must be random bytes, not text or a pattern: docs/operations.md says how to make one';

/** Random bytes, or the steps between them, have fewer distinct values about once in 10^11 keys. */
const DISTINCT_MIN = 19;

/** Whether bytes may be random: not text, nor a repeated byte, word or step. */
export function mayBeRandom(key: Buffer): boolean {
  const text = key.toString('base64url');
  const steps = key.map((byte, index) => byte - (key[index - 1] ?? 0)).subarray(1);
  // A key in one case is often words.
  const isOneCase = text === text.toLowerCase() || text === text.toUpperCase();
  return (
    [key, steps].every((bytes) => new Set(bytes).size >= DISTINCT_MIN) && !isOneCase && !isText(key)
  );
}

function isText(bytes: Buffer): boolean {
  try {
    return !/[\p{Cc}\p{Cn}]/u.test(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return false;
  }
}

export function newRandomKey(): Buffer {
  for (;;) {
    const key = randomBytes(KEY_BYTES);
    if (mayBeRandom(key)) return key;
  }
}
