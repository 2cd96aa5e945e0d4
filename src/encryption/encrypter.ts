import { createPublicKey, type KeyObject } from 'node:crypto';
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import { z } from 'zod';
import {
  createStaticKeyRing,
  type EncryptionKeys,
  findKey,
  type Key,
  type KeyRing,
} from './key-ring';

/** Wraps the content key with a key of the service, or for the holder of a private key. */
const WRAPPING = { shared: 'A256GCMKW', pair: 'ECDH-ES+A256KW' } as const;
const CONTENT_ENCRYPTION = 'A256GCM';

/** Ciphertext (JWE compact). The brand prevents mixing it up with plain text. */
export const Encrypted = z
  .string()
  .regex(/^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]*\.[\w-]+$/)
  .brand<'Encrypted'>();
export type Encrypted = z.infer<typeof Encrypted>;

/** Error of a value that can't be decrypted. Its message is fixed, so it never quotes the value. */
export class DecryptionError extends Error {
  constructor() {
    super('The encrypted value could not be decrypted.');
    this.name = 'DecryptionError';
  }
}

export type Encrypter = ReturnType<typeof createEncrypter>;

/**
 * Encrypts at rest: a new content key for every value, wrapped by the current key of the key ring.
 * Older keys still decrypt their values; `getKid` returns the name of the key of a value.
 * A value is bound to its `owner` (as `recipient/{id}`): it cannot be decrypted in another record.
 * @param keys a key ring that follows its file, or keys that never change
 * @throws Error when constant keys lack the current one or contain one that is not 32 bytes
 */
export function createEncrypter(keys: KeyRing | EncryptionKeys) {
  const keyRing = 'keys' in keys ? createStaticKeyRing(keys) : keys;
  return {
    /** @throws KeyRingError when the current key is unknown */
    encrypt: (plainText: string, owner: string): Promise<Encrypted> =>
      encrypt(keyRing, plainText, owner),
    /** @throws DecryptionError for another owner, an unknown key, a changed or foreign text */
    decrypt: (ciphertext: Encrypted, owner: string): Promise<string> =>
      decrypt(keyRing, ciphertext, owner),
    /** Returns the name of the key of a value. @throws DecryptionError when the text has none */
    getKid: (ciphertext: Encrypted): string => getKid(ciphertext),
  };
}

async function encrypt(keyRing: KeyRing, plainText: string, owner: string): Promise<Encrypted> {
  const keys = keyRing.forEncryption();
  const { current: kid } = keys;
  const key = findKey(keys, kid);
  if (key === undefined) throw new Error(`There is no encryption key "${kid}".`);
  const ciphertext = await new CompactEncrypt(Buffer.from(plainText, 'utf8'))
    .setProtectedHeader({ alg: getWrapping(key), enc: CONTENT_ENCRYPTION, kid, sub: owner })
    .encrypt(getPublicPart(key));
  return Encrypted.parse(ciphertext);
}

async function decrypt(keyRing: KeyRing, ciphertext: Encrypted, owner: string): Promise<string> {
  const kid = getKid(ciphertext);
  const key = findKey(keyRing.forDecryption(kid), kid);
  // A public key decrypts nothing.
  if (key === undefined || isPublic(key)) throw new DecryptionError();
  const result = await compactDecrypt(ciphertext, key, {
    keyManagementAlgorithms: [getWrapping(key)],
    contentEncryptionAlgorithms: [CONTENT_ENCRYPTION],
  }).catch(() => undefined);
  // The header is authenticated together with the text, so its owner is trusted only now.
  if (result === undefined || result.protectedHeader['sub'] !== owner) throw new DecryptionError();
  return Buffer.from(result.plaintext).toString('utf8');
}

function getWrapping(key: Key): string {
  return Buffer.isBuffer(key) ? WRAPPING.shared : WRAPPING.pair;
}

function isPublic(key: Key): boolean {
  return !Buffer.isBuffer(key) && key.type === 'public';
}

/** Returns the key that encrypts: the public part of a pair, or the key itself. */
function getPublicPart(key: Key): Buffer | KeyObject {
  return Buffer.isBuffer(key) || isPublic(key) ? key : createPublicKey(key);
}

function getKid(ciphertext: Encrypted): string {
  try {
    const { kid } = decodeProtectedHeader(ciphertext);
    if (typeof kid === 'string') return kid;
  } catch {
    // A text that is not a JWE gets the same error as a JWE without a key name.
  }
  throw new DecryptionError();
}
