import {
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';

/** A new use of such a key needs a new label. */
const LABEL = 'audit-line-v1';
/** PKCS #8 of an Ed25519 key, before its 32 bytes. */
const PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;

/**
 * Derives the key pair of an operator or a process, whose key is random: who has only the public
 * half signs nothing.
 */
function deriveKey(secret: string): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', LABEL, SEED_BYTES));
  return createPrivateKey({ key: Buffer.concat([PREFIX, seed]), format: 'der', type: 'pkcs8' });
}

/** @returns the public half, as stored */
export function derivePublicKey(secret: string): string {
  const key = createPublicKey(deriveKey(secret));
  return key.export({ format: 'der', type: 'spki' }).toString('base64url');
}

/** @param secret key of an operator or a process */
export function signAs(secret: string, text: string): string {
  return sign(null, Buffer.from(text), deriveKey(secret)).toString('base64url');
}

/** @param publicKey as `derivePublicKey` returned it */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  const key = { key: Buffer.from(publicKey, 'base64url'), format: 'der', type: 'spki' } as const;
  return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
}
