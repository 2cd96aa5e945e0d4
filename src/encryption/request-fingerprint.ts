import { createHmac } from 'node:crypto';

/** Keyed hashes that workflows store: they reveal nothing, and outlast the database. */
export interface RequestHashes {
  key: string;
  body: string;
}

interface IdempotencyScope {
  account_id: string;
  livemode: boolean;
  operation: string;
  key: string;
}

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
