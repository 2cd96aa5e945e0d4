import { createHash, createHmac } from 'node:crypto';

/**
 * Derives the 256-bit secret in a payment's `redirect_url` from its id under a server key, so that
 * every read can return it while only its hash is stored. @see docs/decisions.md#payments
 */
export function payToken(key: Buffer, paymentId: string): string {
  return createHmac('sha256', key).update(`pay:${paymentId}`).digest('base64url');
}

/** Hash by which the page finds its payment. */
export function payTokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** URL of the page: single use, expires with the payment. @see docs/api.md#create-a-payment */
export function redirectUrl(publicUrl: string, key: Buffer, paymentId: string): string {
  return `${publicUrl}/pay/${payToken(key, paymentId)}`;
}

/** URL of the page on which a payer sends coins. @see docs/api.md#crypto */
export function cryptoPageUrl(publicUrl: string, key: Buffer, cryptoPaymentId: string): string {
  return `${publicUrl}/pay/crypto/${payToken(key, cryptoPaymentId)}`;
}
