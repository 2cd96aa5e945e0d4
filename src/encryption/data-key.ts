import { randomBytes, type webcrypto } from 'node:crypto';
import { CompactEncrypt, compactDecrypt } from 'jose';
import { DecryptionError, Encrypted } from './encrypter';

const CONTENT_ENCRYPTION = 'A256GCM';
const KEY_BYTES = 32;

/** Key that encrypts many small values directly, so a list of them decrypts in milliseconds. */
export type DataKey = webcrypto.CryptoKey;

/** Creates the text of a new data key, which is itself stored encrypted. */
export function newDataKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** @throws DecryptionError when the text is not a data key */
export async function importDataKey(text: string): Promise<DataKey> {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== KEY_BYTES) throw new DecryptionError();
  return await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt']);
}

/** Encrypts a value for its owner: it cannot be decrypted in another record. */
export async function encryptWithDataKey(
  key: DataKey,
  plainText: string,
  owner: string,
): Promise<Encrypted> {
  const ciphertext = await new CompactEncrypt(Buffer.from(plainText, 'utf8'))
    .setProtectedHeader({ alg: 'dir', enc: CONTENT_ENCRYPTION, sub: owner })
    .encrypt(key);
  return Encrypted.parse(ciphertext);
}

/** @throws DecryptionError for another owner, another key, a changed or foreign text */
export async function decryptWithDataKey(
  key: DataKey,
  ciphertext: string,
  owner: string,
): Promise<string> {
  const result = await compactDecrypt(ciphertext, key, {
    keyManagementAlgorithms: ['dir'],
    contentEncryptionAlgorithms: [CONTENT_ENCRYPTION],
  }).catch(() => undefined);
  if (result === undefined || result.protectedHeader['sub'] !== owner) throw new DecryptionError();
  return Buffer.from(result.plaintext).toString('utf8');
}
