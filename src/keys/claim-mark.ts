import { createHmac } from 'node:crypto';
import { FIRST_KEY } from '../config';
import { type Key, type KeyRing, keyNamed } from './ring';

/**
 * Idempotency key and body of a request as a workflow carries them: keyed hashes, from which nothing
 * of either can be read. They outlive a database that is lost.
 */
export interface ClaimMark {
  key: string;
  /** Fingerprint that the claim holds. */
  body: string;
  /** Key of the page's link, as the payment keeps it. */
  token_kid?: string;
}

/** Adds the key of the page's link to a mark, so that the link outlives the database too. */
export function markedLink(mark: ClaimMark, { token_kid }: { token_kid?: string }): ClaimMark {
  return token_kid === undefined ? mark : { ...mark, token_kid };
}

/** Place of an idempotency key: it counts per account, environment and operation. */
interface ClaimPlace {
  account_id: string;
  livemode: boolean;
  operation: string;
  key: string;
}

/** Marks a request under the current key. @param canonical body in a form that equal bodies share */
export function claimMark(ring: KeyRing, place: ClaimPlace, canonical: string): ClaimMark {
  const keys = ring.forSealing();
  const key = keyNamed(keys, keys.current);
  if (key === undefined) throw new Error('There is no key for fingerprints.');
  const body = bodyHash(key, place, canonical);
  const named = keys.current === FIRST_KEY ? body : `${keys.current}:${body}`;
  return { key: claimKeyHash(key, place), body: named };
}

/** Whether a fingerprint is of this body, under the key that it names. */
export function isOfBody(
  ring: KeyRing,
  place: ClaimPlace,
  canonical: string,
  fingerprint: string,
): boolean {
  const [kid, hash] = fingerprintParts(fingerprint);
  const key = keyNamed(ring.forOpening(kid), kid);
  return key !== undefined && bodyHash(key, place, canonical) === hash;
}

/** Hashes of an idempotency key under every key of the ring: one of them may name its claim. */
export function claimKeyHashes(ring: KeyRing, place: ClaimPlace): string[] {
  return Object.values(ring.forSealing().keys).map((key) => claimKeyHash(key, place));
}

/** Hashes an idempotency key at its place. */
export function claimKeyHash(fingerprintKey: Key, place: ClaimPlace): string {
  const { account_id, livemode, operation, key } = place;
  return createHmac('sha256', fingerprintKey)
    .update(`claim\n${account_id}\n${livemode}\n${operation}\n${key}`)
    .digest('base64url');
}

function bodyHash(key: Key, { operation }: ClaimPlace, canonical: string): string {
  return createHmac('sha256', key).update(`${operation}\n${canonical}`).digest('base64url');
}

/** Name of the key and hash; without a name it is of the first key. */
function fingerprintParts(fingerprint: string): [kid: string, hash: string] {
  const end = fingerprint.lastIndexOf(':');
  if (end === -1) return [FIRST_KEY, fingerprint];
  return [fingerprint.slice(0, end), fingerprint.slice(end + 1)];
}
