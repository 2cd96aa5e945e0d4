import { toEnv } from '../../../domain/environment';
import { ServiceError } from '../../../domain/errors';
import type { RailId } from '../../../domain/payout/rails';
import { createEncrypter, type Encrypted, type Encrypter } from '../../../encryption/encrypter';
import {
  createRecipientReencrypter,
  type RecipientReencrypter,
  splitKids,
} from '../../../encryption/recipient-keys';
import {
  followPairs,
  getKeyRingName,
  type Holder,
  listHolders,
  type RecipientKeyRingName,
  toHolder,
} from '../../../encryption/recipient-pairs';
import { followKeyFile } from '../../../encryption/service-keys';
import { listPayoutConnectors } from '../../../routing';
import type { Stores } from '../../../store';
import type { RecipientGroup } from '../../../store/recipients';
import { type KeyFileDeps, readAll, VALUE_KINDS } from './values';

/** `keys rotate --ring` takes these, and `recipients.live-NAME` for a connector. */
export const KEY_RING_NAMES = ['seal', 'recipients.sandbox', 'recipients.live'] as const;
export type KeyRingName = 'seal' | RecipientKeyRingName;

export function isKeyRingName(name: string): name is KeyRingName {
  return KEY_RING_NAMES.some((each) => each === name) || /^recipients\.live-[\w-]+$/.test(name);
}

/** @returns undefined for the service's own key ring */
export function findHolder(name: KeyRingName): Holder | undefined {
  return name === 'seal' ? undefined : toHolder(name);
}

export function findKeyRingName(kid: string): KeyRingName {
  const [name = ''] = kid.split(':');
  return isKeyRingName(name) ? name : 'seal';
}

interface CurrentEncrypter {
  encrypter: Encrypter;
  /** Name of the current key. */
  kid: string;
  kids: string[];
}

export interface Encrypters {
  seal: CurrentEncrypter;
  recipients: RecipientReencrypter;
  /** Keyed by key ring. */
  keys: ReadonlyMap<KeyRingName, { current: string; kids: string[] }>;
}

/** @throws ServiceError `keys_dir_invalid` where a connector's key ring is missing or not routed */
export function createEncrypters({
  keysFile,
  keysDir,
  connectors,
}: Pick<KeyFileDeps, 'keysFile' | 'keysDir' | 'connectors'>): Encrypters {
  const keyRing = followKeyFile(keysFile).seal;
  const own = keyRing.forEncryption();
  const kids = Object.keys(own.keys);
  const seal = { encrypter: createEncrypter(keyRing), kid: own.current, kids };
  const holders = listHolders(keysDir);
  const owned = holders.filter((holder) => holder.startsWith('live-')).map(getKeyRingName);
  // Without the API's routes, recipients would be encrypted for the shared keys, and no connector
  // with its own could pay one.
  if (owned.length > 0 && listPayoutConnectors(connectors).length === 0) {
    const message = `KEYS_DIR has ${owned.join(', ')}, but LIVE_CONNECTORS names no bank that pays out: set it as for the API.`;
    throw new ServiceError('keys_dir_invalid', message);
  }
  const pairs = holders.map((holder) => {
    const { current, keys } = followPairs(keysDir, holder, 'private').forEncryption();
    return [getKeyRingName(holder), { current, kids: Object.keys(keys) }] as const;
  });
  const listPayers = (rail: RailId) => connectors.listConnectors(rail, true);
  return {
    seal,
    recipients: createRecipientReencrypter(keysDir, { holders, listPayers }),
    keys: new Map([['seal', { current: seal.kid, kids: seal.kids }], ...pairs]),
  };
}

const NO_KEY = '?';

/** Records that one key has encrypted. */
export const ZERO_COUNTS = {
  recipients: 0,
  endpoints: 0,
  /** Accepted recipients that are not yet stored. */
  claims: 0,
  /** Users with a second factor. */
  users: 0,
  connector_keys: 0,
  payer_keys: 0,
  /** Disputes with evidence that their banks have not confirmed. */
  evidence: 0,
};
type KeyCounts = typeof ZERO_COUNTS;

/** Lists records first: one that becomes a recipient meanwhile is then counted as such. */
async function listGroups({ recipients }: Stores) {
  const records = await recipients.listRecordGroups();
  const stored = await recipients.listGroups();
  return [
    ...records.map((group) => ({ held: 'claims' as const, ...group })),
    ...stored.map((group) => ({ held: 'recipients' as const, ...group })),
  ];
}

/** Lists evidence that its connector still has to send. */
export function listEvidence({ disputes }: Stores) {
  const readPage = (after = '') => disputes.listEvidence(after, BATCH);
  return readAll(readPage);
}

const BATCH = 100;

export async function countByKey(stores: Stores, { seal }: Encrypters) {
  const countsByKey = new Map<string, KeyCounts>();
  const add = (kid: string, count: keyof KeyCounts, n: number) => {
    const counts = countsByKey.get(kid) ?? ZERO_COUNTS;
    countsByKey.set(kid, { ...counts, [count]: counts[count] + n });
  };
  for (const { held, ...group } of await listGroups(stores)) {
    for (const kid of splitKids(group.kid)) add(kid, held, group.count);
  }
  for await (const { evidence } of listEvidence(stores)) {
    for (const kid of splitKids(evidence?.kid ?? NO_KEY)) add(kid, 'evidence', 1);
  }
  for (const { count, read } of VALUE_KINDS) {
    for await (const values of read(stores)) {
      const kids = new Set(values.map(({ ciphertext }) => readKid(seal, ciphertext)));
      for (const kid of kids) add(kid, count, 1);
    }
  }
  return countsByKey;
}

export async function countOutdated(stores: Stores, encrypters: Encrypters): Promise<number> {
  const groups = await listGroups(stores);
  const outdated = groups.filter((group) => isOutdated(encrypters, group));
  const countsByKey = await countByKey(stores, encrypters);
  const others = [...countsByKey].map(
    ([kid, { recipients: _, claims: __, evidence: ___, ...counts }]) =>
      kid === encrypters.seal.kid ? 0 : sum(Object.values(counts)),
  );
  for await (const { evidence, livemode, connector } of listEvidence(stores)) {
    const current = encrypters.recipients.getCurrentKidFor(toEnv(livemode), connector);
    others.push(evidence?.kid === current ? 0 : 1);
  }
  return sum(outdated.map(({ count }) => count)) + sum(others);
}

/** Whether the group has other keys than the current ones of all who may pay it. */
export function isOutdated({ recipients }: Encrypters, group: RecipientGroup): boolean {
  return group.kid !== recipients.getCurrentKid(toEnv(group.livemode), group);
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
