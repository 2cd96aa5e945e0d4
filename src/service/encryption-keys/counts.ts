import type { Encrypted } from '../../encryption/encrypter';
import type { CurrentEncrypter, Encrypters } from './encrypters';
import { type EncryptedStores, VALUE_KINDS } from './values';

const NO_KEY = '?';

/** Numbers of records that one key has encrypted. */
export interface KeyCounts {
  recipients: number;
  endpoints: number;
  /** Recipients that are accepted but not yet stored. */
  claims: number;
  /** Users with a second factor. */
  users: number;
  connector_keys: number;
  /** Data keys of payers, one for each account and environment. */
  payer_keys: number;
}

export const ZERO_COUNTS: KeyCounts = {
  recipients: 0,
  endpoints: 0,
  claims: 0,
  users: 0,
  connector_keys: 0,
  payer_keys: 0,
};

/**
 * Counts idempotency records first: one that becomes a recipient meanwhile is then counted as a
 * recipient.
 */
export async function countByKey(
  stores: EncryptedStores,
  { seal }: Encrypters,
): Promise<Map<string, KeyCounts>> {
  const countsByKey = new Map<string, KeyCounts>();
  const add = (kid: string, count: keyof KeyCounts, n: number) => {
    const counts = countsByKey.get(kid) ?? ZERO_COUNTS;
    countsByKey.set(kid, { ...counts, [count]: counts[count] + n });
  };
  for (const [kid, n] of await stores.recipients.countRecordsByKey()) add(kid, 'claims', n);
  for (const [kid, n] of await stores.recipients.countByKey()) add(kid, 'recipients', n);
  for (const { count, read } of VALUE_KINDS) {
    for await (const values of read(stores)) {
      const kids = new Set(values.map(({ ciphertext }) => readKid(seal, ciphertext)));
      for (const kid of kids) add(kid, count, 1);
    }
  }
  return countsByKey;
}

/** Counts the values that are not encrypted with the current keys. */
export function countRemaining(
  countsByKey: ReadonlyMap<string, KeyCounts>,
  encrypters: Encrypters,
): number {
  const { seal, ...recipientEncrypters } = encrypters;
  const recipientKids = Object.values(recipientEncrypters).map(({ kid }) => kid);
  const counts = [...countsByKey].map(([kid, { recipients, claims, ...others }]) => {
    const recipientCount = recipientKids.includes(kid) ? 0 : recipients + claims;
    return recipientCount + (kid === seal.kid ? 0 : sum(Object.values(others)));
  });
  return sum(counts);
}

export function readKid({ encrypter }: CurrentEncrypter, ciphertext: Encrypted): string {
  try {
    return encrypter.getKid(ciphertext);
  } catch {
    return NO_KEY;
  }
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
