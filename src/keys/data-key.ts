import { randomBytes, type webcrypto } from 'node:crypto';
import { CompactEncrypt, compactDecrypt } from 'jose';
import { SealError, Sealed } from './seal';

const CONTENT_ENCRYPTION = 'A256GCM';
const KEY_BYTES = 32;

/** Key that encrypts many small values directly, so that a list of them opens in milliseconds. */
export type DataKey = webcrypto.CryptoKey;

/** Makes the text of a new data key, which is itself kept sealed. */
export function newDataKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** @throws SealError when the text is no data key */
export async function importDataKey(text: string): Promise<DataKey> {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length !== KEY_BYTES) throw new SealError();
  return await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt']);
}

/** Seals a value for its owner: moved to another record it won't open. */
export async function sealUnder(key: DataKey, plain: string, owner: string): Promise<Sealed> {
  const sealed = await new CompactEncrypt(Buffer.from(plain, 'utf8'))
    .setProtectedHeader({ alg: 'dir', enc: CONTENT_ENCRYPTION, sub: owner })
    .encrypt(key);
  return Sealed.parse(sealed);
}

/** @throws SealError for another owner, another key, a changed or foreign text */
export async function openUnder(key: DataKey, sealed: string, owner: string): Promise<string> {
  const opened = await compactDecrypt(sealed, key, {
    keyManagementAlgorithms: ['dir'],
    contentEncryptionAlgorithms: [CONTENT_ENCRYPTION],
  }).catch(() => undefined);
  if (opened === undefined || opened.protectedHeader['sub'] !== owner) throw new SealError();
  return Buffer.from(opened.plaintext).toString('utf8');
}
