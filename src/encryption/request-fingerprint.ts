import { createHmac } from 'node:crypto';

/**
 * Keyed hashes of the idempotency key and the body of a request. The workflow stores them: they reveal
 * neither, and they survive a loss of the database.
 */
export interface RequestHashes {
  key: string;
  /** Fingerprint in the idempotency record. */
  body: string;
}

/** Scope of an idempotency key: it is unique per account, environment and operation. */
interface IdempotencyScope {
  account_id: string;
  livemode: boolean;
  operation: string;
  key: string;
}

/**
 * @param fingerprintKey `fingerprint` of the key file
 * @param canonical canonical form of the body: the same text for equal bodies
 */
export function hashRequest(
  fingerprintKey: Buffer,
  { account_id, livemode, operation, key }: IdempotencyScope,
  canonical: string,
): RequestHashes {
  const hash = (text: string) =>
    createHmac('sha256', fingerprintKey).update(text).digest('base64url');
  return {
    key: hash(`key\n${account_id}\n${livemode}\n${operation}\n${key}`),
    body: hash(`${operation}\n${canonical}`),
  };
}
