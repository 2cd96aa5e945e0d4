import { createHash, createHmac } from 'node:crypto';

/**
 * The 256-bit secret in a payment's `redirect_url`. Derived from the payment's id under a server
 * key, so that every read can return it while only its hash is stored. Decided: "Payments".
 */
export function payToken(key: Buffer, paymentId: string): string {
  return createHmac('sha256', key).update(`pay:${paymentId}`).digest('base64url');
}

/** By which the page finds its payment. */
export function payTokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Single use; expires with the payment. @see spec §2.1 */
export function redirectUrl(publicUrl: string, key: Buffer, paymentId: string): string {
  return `${publicUrl}/pay/${payToken(key, paymentId)}`;
}
