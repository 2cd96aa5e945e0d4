import { createHash, createHmac } from 'node:crypto';

export function hashPayToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** @param key `pay_token` of the key file */
export function derivePayTokenHash(key: Buffer, paymentId: string): string {
  return hashPayToken(derivePayToken(key, paymentId));
}

/** Builds a single-use URL, which expires with the payment. @see docs/api.md#create-a-payment */
export function buildRedirectUrl(publicUrl: string, key: Buffer, paymentId: string): string {
  return `${publicUrl}/pay/${derivePayToken(key, paymentId)}`;
}

/** @see docs/api.md#crypto */
export function buildCryptoPageUrl(publicUrl: string, key: Buffer, paymentId: string): string {
  return `${publicUrl}/pay/crypto/${derivePayToken(key, paymentId)}`;
}

/**
 * Derives the secret from the id, so that every read can return it while only its hash is stored.
 * @see docs/decisions.md#payments
 */
function derivePayToken(key: Buffer, paymentId: string): string {
  return createHmac('sha256', key).update(`pay:${paymentId}`).digest('base64url');
}
