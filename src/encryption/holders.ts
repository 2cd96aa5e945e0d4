import { createPublicKey } from 'node:crypto';
import { GeneralEncrypt, generalDecrypt } from 'jose';
import { z } from 'zod';
import {
  CONTENT_ENCRYPTION,
  createEncrypter,
  DecryptionError,
  Encrypted,
  findKid,
  WRAPPING,
} from './encrypter';
import { findKey, type KeyRing } from './key-ring';

const GeneralJwe = z.object({
  recipients: z.array(
    z.object({ encrypted_key: z.string(), header: z.looseObject({ kid: z.string() }) }),
  ),
  protected: z.string(),
  iv: z.string(),
  ciphertext: z.string(),
  tag: z.string(),
});
type GeneralJwe = z.infer<typeof GeneralJwe>;

const SEPARATOR = '+';

/** Joins names of keys that each decrypt a value. */
export function joinKids(kids: readonly string[]): string {
  return kids.toSorted().join(SEPARATOR);
}

export function splitKids(kid: string): string[] {
  return kid.split(SEPARATOR);
}

/**
 * Encrypts so that any holder's private key decrypts.
 * @throws KeyRingError when a current key is unknown
 */
export async function encryptForHolders(
  plainText: string,
  owner: string,
  keyRings: readonly KeyRing[],
): Promise<Encrypted> {
  const [first, ...others] = keyRings;
  if (first !== undefined && others.length === 0) {
    return await createEncrypter(first).encrypt(plainText, owner);
  }
  const value = new GeneralEncrypt(Buffer.from(plainText, 'utf8'));
  value.setProtectedHeader({ enc: CONTENT_ENCRYPTION, sub: owner });
  for (const keyRing of keyRings) {
    const keys = keyRing.forEncryption();
    const key = findKey(keys, keys.current);
    if (key === undefined || Buffer.isBuffer(key)) throw new Error('A key pair is missing.');
    const publicKey = key.type === 'public' ? key : createPublicKey(key);
    value.addRecipient(publicKey).setUnprotectedHeader({ alg: WRAPPING.pair, kid: keys.current });
  }
  const { recipients, protected: header, iv, ciphertext, tag } = await value.encrypt();
  return Encrypted.parse(JSON.stringify({ recipients, protected: header, iv, ciphertext, tag }));
}

/** @throws DecryptionError when the text names no key */
export function listKids(ciphertext: Encrypted): string[] {
  const jwe = parseGeneral(ciphertext);
  if (jwe !== undefined) return jwe.recipients.map(({ header }) => header.kid);
  const kid = findKid(ciphertext);
  if (kid === undefined) throw new DecryptionError();
  return [kid];
}

/**
 * @param kid one of `listKids`
 * @throws DecryptionError for another owner, an unknown key, a changed or foreign text
 */
export async function decryptAsHolder(
  ciphertext: Encrypted,
  owner: string,
  { kid, keyRing }: { kid: string; keyRing: KeyRing },
): Promise<string> {
  const jwe = parseGeneral(ciphertext);
  if (jwe === undefined) return await createEncrypter(keyRing).decrypt(ciphertext, owner);
  const key = findKey(keyRing.forDecryption(kid), kid);
  if (key === undefined || Buffer.isBuffer(key) || key.type !== 'private') {
    throw new DecryptionError();
  }
  const recipients = jwe.recipients.filter(({ header }) => header.kid === kid);
  const result = await generalDecrypt({ ...jwe, recipients }, key, {
    keyManagementAlgorithms: [WRAPPING.pair],
    contentEncryptionAlgorithms: [CONTENT_ENCRYPTION],
  }).catch(() => undefined);
  if (result?.protectedHeader?.['sub'] !== owner) throw new DecryptionError();
  return Buffer.from(result.plaintext).toString('utf8');
}

/** A value with one key is in the compact form. */
function parseGeneral(ciphertext: Encrypted): GeneralJwe | undefined {
  if (!ciphertext.startsWith('{')) return undefined;
  try {
    return GeneralJwe.parse(JSON.parse(ciphertext));
  } catch {
    throw new DecryptionError();
  }
}
