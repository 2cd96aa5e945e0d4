import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { KEY_BYTES, mayBeRandom, NOT_RANDOM } from './key-file';
import { checkEncryptionKeys, createKeyRing, followFile, type KeyRing } from './key-ring';

export const Key32 = z
  .base64url()
  .transform((text) => Buffer.from(text, 'base64url'))
  .refine((key) => key.length === KEY_BYTES, `must be ${KEY_BYTES} bytes in base64url`)
  .refine(mayBeRandom, NOT_RANDOM);

/** Secrets in `KEYS_FILE` (mode 0600), never in the database. @see docs/operations.md#keys */
const KeyFile = z.object({
  pay_token: Key32,
  fingerprint: Key32,
  seal: z.object({ current: z.string(), keys: z.record(z.string(), Key32) }),
});
export type KeyFile = z.infer<typeof KeyFile>;

export interface ServiceKeys {
  pay_token: Buffer;
  fingerprint: Buffer;
  seal: KeyRing;
}

/**
 * @param clock ms, monotonic
 * @throws Error that never quotes the file, when it is missing or invalid
 */
export function followKeyFile(path: string, clock?: () => number): ServiceKeys {
  const file = followFile(path, parseKeys, clock);
  const { pay_token, fingerprint } = file.latest();
  return { pay_token, fingerprint, seal: createKeyRing(file, ({ seal }) => seal) };
}

/** @throws Error that never quotes the file, when it is missing or invalid */
export function readKeys(path: string): KeyFile {
  return parseKeys(readFileSync(path, 'utf8'));
}

function parseKeys(text: string): KeyFile {
  const keys = KeyFile.parse(parseJson(text));
  checkEncryptionKeys(keys.seal);
  return keys;
}

/** Hides the parser's error, which would quote the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
