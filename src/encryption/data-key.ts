import { randomBytes, type webcrypto } from 'node:crypto';
import { DecryptionError } from './encrypter';

const KEY_BYTES = 32;

/** Key that encrypts small values directly, so that a list of them decrypts in milliseconds. */
export type DataKey = webcrypto.CryptoKey;

/** Creates the text of a data key, which is itself stored encrypted. */
export function newDataKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** @throws DecryptionError when the text is not a data key */
export async function importDataKey(text: string): Promise<DataKey> {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== KEY_BYTES) throw new DecryptionError();
  return await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt']);
}
