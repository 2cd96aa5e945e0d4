import { createEncrypter, type Encrypted, type Encrypter } from '../../encryption/encrypter';
import type { KeyRing } from '../../encryption/key-ring';
import { followPairs, RECIPIENT_KEY_RINGS } from '../../encryption/recipient-keys';
import { followKeyFile } from '../../encryption/service-keys';
import { type EncryptedStores, VALUE_KINDS } from './values';

/** Names that `keys rotate --ring` takes. */
export const KEY_RING_NAMES = ['seal', 'recipients.sandbox', 'recipients.live'] as const;
export type KeyRingName = (typeof KEY_RING_NAMES)[number];

export interface CurrentEncrypter {
  encrypter: Encrypter;
  /** Name of the current key. */
  kid: string;
  kids: string[];
}

export type Encrypters = Record<KeyRingName, CurrentEncrypter>;

export function createEncrypters(paths: { keysFile: string; keysDir: string }): Encrypters {
  return {
    seal: toEncrypter(followKeyFile(paths.keysFile).seal),
    'recipients.sandbox': toEncrypter(followPairs(paths.keysDir, 'sandbox', 'private')),
    'recipients.live': toEncrypter(followPairs(paths.keysDir, 'live', 'private')),
  };
}

function toEncrypter(keyRing: KeyRing): CurrentEncrypter {
  const { current: kid, keys } = keyRing.forEncryption();
  return { encrypter: createEncrypter(keyRing), kid, kids: Object.keys(keys) };
}

/** Names of recipients' keys begin with the name of their key ring. */
export function findKeyRingName(kid: string): KeyRingName {
  const names = Object.values(RECIPIENT_KEY_RINGS);
  return names.find((name) => kid.startsWith(`${name}:`)) ?? 'seal';
}

const NO_KEY = '?';

/** Numbers of records that one key has encrypted. */
export const ZERO_COUNTS = {
  recipients: 0,
  endpoints: 0,
  /** Recipients that are accepted but not yet stored. */
  claims: 0,
  /** Users with a second factor. */
  users: 0,
  connector_keys: 0,
  /** Data keys of payers, one for each account and environment. */
  payer_keys: 0,
};
export type KeyCounts = typeof ZERO_COUNTS;

/**
 * Counts idempotency records first: one that becomes a recipient meanwhile is then counted as a
 * recipient.
 */
export async function countByKey(stores: EncryptedStores, { seal }: Encrypters) {
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
