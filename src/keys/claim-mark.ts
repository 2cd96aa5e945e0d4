import { createHmac } from 'node:crypto';

/**
 * Idempotency key and body of a request as a workflow carries them: keyed hashes, from which nothing
 * of either can be read. They outlive a database that is lost.
 */
export interface ClaimMark {
  key: string;
  /** Fingerprint that the claim holds. */
  body: string;
}

/** Hashes an idempotency key as it counts: per account, environment and operation. */
export function claimKeyHash(
  fingerprintKey: Buffer,
  claim: { account_id: string; livemode: boolean; operation: string; key: string },
): string {
  const { account_id, livemode, operation, key } = claim;
  return createHmac('sha256', fingerprintKey)
    .update(`claim\n${account_id}\n${livemode}\n${operation}\n${key}`)
    .digest('base64url');
}
