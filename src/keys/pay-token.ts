import { createHash, createHmac } from 'node:crypto';
import { FIRST_KEY } from '../config';
import { type Key, type KeyRing, keyNamed } from './ring';

/** Payment whose page has a token. */
export interface TokenOwner {
  _id: string;
  /** Key that derives it; absent for the first one. */
  token_kid?: string | undefined;
}

/** Names the key that derives tokens now, as a payment keeps it. */
export function tokenKey(ring: KeyRing): { token_kid?: string } {
  const { current } = ring.forSealing();
  return current === FIRST_KEY ? {} : { token_kid: current };
}

/** Whether the key of a page is still in the ring; links of one that was retired lead nowhere. */
export function isTokenKept(ring: KeyRing, { token_kid = FIRST_KEY }: TokenOwner): boolean {
  return keyNamed(ring.forOpening(token_kid), token_kid) !== undefined;
}

/**
 * Hash by which a new payment's page is found.
 * @throws Error while this process does not have the key that the payment names
 */
export function newTokenHash(ring: KeyRing, owner: TokenOwner): string {
  const { _id, token_kid = FIRST_KEY } = owner;
  const key = keyNamed(ring.forOpening(token_kid), token_kid);
  if (key === undefined) throw new Error(`This process has no key "${token_kid}" for links.`);
  return payTokenHash(payToken(key, _id));
}

/** Hash by which the page finds its payment. */
export function payTokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** URL of the page: single use, expires with the payment. @see docs/api.md#create-a-payment */
export function redirectUrl(publicUrl: string, ring: KeyRing, payment: TokenOwner): string {
  return `${publicUrl}/pay/${tokenOf(ring, payment)}`;
}

/** URL of the page on which a payer sends coins. @see docs/api.md#crypto */
export function cryptoPageUrl(publicUrl: string, ring: KeyRing, payment: TokenOwner): string {
  return `${publicUrl}/pay/crypto/${tokenOf(ring, payment)}`;
}

/** Token of a payment's page; where its key was retired, one that no page answers to. */
function tokenOf(ring: KeyRing, { _id, token_kid = FIRST_KEY }: TokenOwner): string {
  const keys = ring.forOpening(token_kid);
  const key = keyNamed(keys, token_kid) ?? keyNamed(keys, keys.current);
  if (key === undefined) throw new Error('There is no key for links.');
  return payToken(key, _id);
}

/**
 * Derives the 256-bit secret in a payment's `redirect_url` from its id under a server key, so that
 * every read can return it while only its hash is stored. @see docs/decisions.md#payments
 */
function payToken(key: Key, paymentId: string): string {
  return createHmac('sha256', key).update(`pay:${paymentId}`).digest('base64url');
}
