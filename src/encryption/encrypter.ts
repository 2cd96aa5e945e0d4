import { createPublicKey, type KeyObject, randomBytes, type webcrypto } from 'node:crypto';
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import { z } from 'zod';
import { KEY_BYTES, newRandomKey } from './key-file';
import {
  createStaticKeyRing,
  type EncryptionKeys,
  findKey,
  type Key,
  type KeyRing,
} from './key-ring';

/** Wraps the content key with a shared key, or for the holder of a private key. */
export const WRAPPING = { shared: 'A256GCMKW', pair: 'ECDH-ES+A256KW' } as const;
export const CONTENT_ENCRYPTION = 'A256GCM';

const COMPACT = /^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]*\.[\w-]+$/;
const GENERAL =
  /^\{"recipients":\[.+\],"protected":"[\w-]+","iv":"[\w-]+","ciphertext":"[\w-]+","tag":"[\w-]+"\}$/;

/** Compact JWE, or a general one for several keys. */
export const Encrypted = z
  .string()
  .refine((text) => COMPACT.test(text) || GENERAL.test(text))
  .brand<'Encrypted'>();
export type Encrypted = z.infer<typeof Encrypted>;

/** Error with a fixed message, so that it never quotes the value. */
export class DecryptionError extends Error {
  constructor() {
    super('The encrypted value could not be decrypted.');
    this.name = 'DecryptionError';
  }
}

export type Encrypter = ReturnType<typeof createEncrypter>;

/**
 * Encrypts at rest: each value has a content key of its own, wrapped by the current key. A value is
 * bound to its `owner` (`recipient/{id}`), so it cannot be decrypted in another record.
 * @throws Error as `checkEncryptionKeys`
 */
export function createEncrypter(keys: KeyRing | EncryptionKeys) {
  const keyRing = 'keys' in keys ? createStaticKeyRing(keys) : keys;
  return {
    /** @throws KeyRingError when the current key is unknown */
    encrypt: async (plainText: string, owner: string): Promise<Encrypted> => {
      const keys = keyRing.forEncryption();
      const { current: kid } = keys;
      const key = findKey(keys, kid);
      if (key === undefined) throw new Error(`There is no encryption key "${kid}".`);
      const header = { alg: getWrapping(key), kid, sub: owner };
      const isWhole = Buffer.isBuffer(key) || isPublic(key);
      return await encryptJwe(plainText, isWhole ? key : createPublicKey(key), header);
    },
    /** @throws DecryptionError for another owner, an unknown key, a changed or foreign text */
    decrypt: async (ciphertext: Encrypted, owner: string): Promise<string> => {
      const kid = getKid(ciphertext);
      const key = findKey(keyRing.forDecryption(kid), kid);
      if (key === undefined || isPublic(key)) throw new DecryptionError();
      return await decryptJwe(ciphertext, key, { alg: getWrapping(key), sub: owner });
    },
    /** @throws DecryptionError when the text names no key */
    getKid,
  };
}

const SECRETS_MAX = 10_000;

/** Remembers the plain text of secrets that are used again and again, which never change. */
export function cacheDecrypted({
  decrypt,
}: Pick<Encrypter, 'decrypt'>): Pick<Encrypter, 'decrypt'> {
  const secrets = new Map<string, string>();
  return {
    decrypt: async (ciphertext: Encrypted, owner: string): Promise<string> => {
      const key = `${owner} ${ciphertext}`;
      const known = secrets.get(key);
      if (known !== undefined) return known;
      const secret = await decrypt(ciphertext, owner);
      if (secrets.size >= SECRETS_MAX) secrets.clear();
      secrets.set(key, secret);
      return secret;
    },
  };
}

/** `sub` is the owner of the value. */
interface ValueHeader {
  alg: string;
  sub: string;
  kid?: string;
}

export async function encryptJwe(
  plainText: string,
  key: Buffer | KeyObject | webcrypto.CryptoKey,
  header: ValueHeader,
): Promise<Encrypted> {
  const ciphertext = await new CompactEncrypt(Buffer.from(plainText, 'utf8'))
    .setProtectedHeader({ ...header, enc: CONTENT_ENCRYPTION })
    .encrypt(key);
  return Encrypted.parse(ciphertext);
}

/** @throws DecryptionError for another owner, another key, a changed or foreign text */
export async function decryptJwe(
  ciphertext: string,
  key: Buffer | KeyObject | webcrypto.CryptoKey,
  { alg, sub }: ValueHeader,
): Promise<string> {
  const result = await compactDecrypt(ciphertext, key, {
    keyManagementAlgorithms: [alg],
    contentEncryptionAlgorithms: [CONTENT_ENCRYPTION],
  }).catch(() => undefined);
  // The owner is trusted only now: the header is authenticated together with the text.
  if (result === undefined || result.protectedHeader['sub'] !== sub) throw new DecryptionError();
  return Buffer.from(result.plaintext).toString('utf8');
}

function getWrapping(key: Key): string {
  return Buffer.isBuffer(key) ? WRAPPING.shared : WRAPPING.pair;
}

function isPublic(key: Key): boolean {
  return !Buffer.isBuffer(key) && key.type === 'public';
}

function getKid(ciphertext: Encrypted): string {
  const kid = findKid(ciphertext);
  if (kid === undefined) throw new DecryptionError();
  return kid;
}

export function findKid(ciphertext: string): string | undefined {
  try {
    return decodeProtectedHeader(ciphertext).kid;
  } catch {
    return undefined;
  }
}

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
