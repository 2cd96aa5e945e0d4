import { createHash, createHmac } from 'node:crypto';

/** Hashes the token of a page, which finds its payment by this hash. */
export function hashPayToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Derives the hash of the token of a payment's page. @param key `pay_token` of the key file */
export function derivePayTokenHash(key: Buffer, paymentId: string): string {
  return hashPayToken(derivePayToken(key, paymentId));
}

/** URL of the page: single use, expires with the payment. @see docs/api.md#create-a-payment */
export function buildRedirectUrl(publicUrl: string, key: Buffer, paymentId: string): string {
  return `${publicUrl}/pay/${derivePayToken(key, paymentId)}`;
}

/** URL of the page of a crypto payment. @see docs/api.md#crypto */
export function buildCryptoPageUrl(publicUrl: string, key: Buffer, paymentId: string): string {
  return `${publicUrl}/pay/crypto/${derivePayToken(key, paymentId)}`;
}

/**
 * Derives the 256-bit secret in a payment's `redirect_url` from its id with a server key, so
 * every read can return it while only its hash is stored. @see docs/decisions.md#payments
 */
function derivePayToken(key: Buffer, paymentId: string): string {
  return createHmac('sha256', key).update(`pay:${paymentId}`).digest('base64url');
}
