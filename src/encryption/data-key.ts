import { randomBytes, type webcrypto } from 'node:crypto';
import { DecryptionError } from './encrypter';
import { KEY_BYTES, newRandomKey } from './random-key';

const ID_BYTES = 9;

/** Key that encrypts small values directly, so that a list of them decrypts in milliseconds. */
export type DataKey = webcrypto.CryptoKey;

export function newDataKey(): { id: string; text: string } {
  const id = randomBytes(ID_BYTES).toString('base64url');
  return { id, text: newRandomKey().toString('base64url') };
}

/** @throws DecryptionError when the text is not a data key */
export async function importDataKey(text: string): Promise<DataKey> {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== KEY_BYTES) throw new DecryptionError();
  return await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt']);
}
