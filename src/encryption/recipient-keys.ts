import { existsSync } from 'node:fs';
import type { Env } from '../domain/environment';
import type { RailId } from '../domain/payout/rails';
import { findRails, type RailFacts } from '../domain/payout/rules';
import { DecryptionError, type Encrypted, type Encrypter } from './encrypter';
import { decryptAsHolder, encryptForHolders, joinKids, listKids } from './holders';
import type { KeyRing } from './key-ring';
import {
  followPairs,
  getHolder,
  getKeyRingName,
  type Holder,
  keyRingPath,
  type Part,
} from './recipient-pairs';

export type ListPayers = (rail: RailId) => readonly string[];

/** @see docs/security.md#cryptographic-keys */
interface RecipientEncrypter {
  /** @throws KeyRingError when a current key is unknown */
  encrypt(details: string, owner: string, facts: RailFacts): Promise<Encrypted>;
  /** Encrypts for one connector. */
  encryptFor(connector: string, details: string, owner: string): Promise<Encrypted>;
  getKid(ciphertext: Encrypted): string;
}

export interface RecipientEncrypters {
  live: RecipientEncrypter;
  /** All connectors of the sandbox share a key ring. */
  sandbox: Pick<RecipientEncrypter, 'getKid' | 'encryptFor'> & {
    encrypt(details: string, owner: string, facts?: RailFacts): Promise<Encrypted>;
  };
}

/**
 * Creates encrypters that have only public keys, so they cannot decrypt.
 * @throws Error when a file that all need is missing or invalid
 */
export function createRecipientEncrypters(
  dir: string,
  listPayers: ListPayers = () => [],
): RecipientEncrypters {
  const keyRings = followHolders(dir, 'public');
  const sandbox = keyRings.get('sandbox');
  keyRings.get('live');
  return {
    live: {
      encrypt: async (details, owner, facts) => {
        const holders = findHolders(keyRings.has, listPayers, 'live', facts);
        return await encryptForHolders(details, owner, holders.map(keyRings.get));
      },
      encryptFor: (connector, details, owner) => {
        const holder = findHolder(keyRings.has, 'live', connector);
        return encryptForHolders(details, owner, [keyRings.get(holder)]);
      },
      getKid: getRecipientKid,
    },
    sandbox: {
      encrypt: (details, owner) => encryptForHolders(details, owner, [sandbox]),
      encryptFor: (_connector, details, owner) => encryptForHolders(details, owner, [sandbox]),
      getKid: getRecipientKid,
    },
  };
}

/**
 * Creates the decrypter of a connector, for its own key ring and, where the file exists, the shared
 * one.
 * @throws Error when there is no file, or it is invalid
 */
export function createDetailsDecrypter(
  dir: string,
  environment: Env,
  connector?: string,
): Pick<Encrypter, 'decrypt'> {
  const keyRings = followHolders(dir, 'private');
  const own = connector === undefined || environment === 'sandbox' ? [] : [getHolder(connector)];
  const holders = [...own, environment];
  const ready = holders.filter(keyRings.has);
  for (const holder of ready.length === 0 ? holders.slice(0, 1) : ready) keyRings.get(holder);
  return { decrypt: createDecrypt(keyRings, () => holders.filter(keyRings.has)) };
}

/** Encrypts like the API and decrypts like all connectors, for the command line. */
export function createRecipientReencrypter(
  dir: string,
  { holders, listPayers }: { holders: readonly Holder[]; listPayers: ListPayers },
) {
  const keyRings = followHolders(dir, 'private');
  const getOwn = (environment: Env, connector: string) =>
    keyRings.get(findHolder(keyRings.has, environment, connector));
  const find = (environment: Env, facts: RailFacts) =>
    findHolders(keyRings.has, listPayers, environment, facts).map(keyRings.get);
  return {
    encrypt: (environment: Env, facts: RailFacts, value: { text: string; owner: string }) =>
      encryptForHolders(value.text, value.owner, find(environment, facts)),
    encryptFor: (environment: Env, connector: string, value: { text: string; owner: string }) =>
      encryptForHolders(value.text, value.owner, [getOwn(environment, connector)]),
    getCurrentKidFor: (environment: Env, connector: string) =>
      joinKids([getOwn(environment, connector).forEncryption().current]),
    decrypt: createDecrypt(keyRings, () => holders),
    getKid: getRecipientKid,
    getCurrentKid: (environment: Env, facts: RailFacts) =>
      joinKids(find(environment, facts).map((keyRing) => keyRing.forEncryption().current)),
  };
}

export type RecipientReencrypter = ReturnType<typeof createRecipientReencrypter>;

function getRecipientKid(ciphertext: Encrypted): string {
  return joinKids(listKids(ciphertext));
}

/**
 * Finds the live connectors of the rails that can pay a recipient. Connectors without a key ring
 * share one, which also holds what no rail can pay.
 */
function findHolders(
  has: (holder: Holder) => boolean,
  listPayers: ListPayers,
  environment: Env,
  facts: RailFacts,
): Holder[] {
  if (environment === 'sandbox') return ['sandbox'];
  const connectors = findRails(facts).flatMap(listPayers);
  const own = connectors.map(getHolder);
  const holders = own.map((holder) => (has(holder) ? holder : 'live'));
  return holders.length === 0 ? ['live'] : [...new Set(holders)].toSorted();
}

/** Finds the holder of what one connector decrypts. */
function findHolder(has: (holder: Holder) => boolean, environment: Env, connector: string): Holder {
  const own = getHolder(connector);
  if (environment === 'sandbox') return 'sandbox';
  return has(own) ? own : 'live';
}

/** Follows files that appear later, too. */
function followHolders(dir: string, part: Part) {
  const followed = new Map<Holder, KeyRing>();
  return {
    has: (holder: Holder): boolean =>
      followed.has(holder) || existsSync(keyRingPath(dir, holder, part)),
    /** @throws Error when the file is missing or invalid */
    get: (holder: Holder): KeyRing => {
      const keyRing = followed.get(holder) ?? followPairs(dir, holder, part);
      followed.set(holder, keyRing);
      return keyRing;
    },
  };
}

function createDecrypt(
  keyRings: ReturnType<typeof followHolders>,
  listOwn: () => readonly Holder[],
): Encrypter['decrypt'] {
  return async (ciphertext, owner) => {
    const own = listOwn();
    for (const kid of listKids(ciphertext)) {
      const holder = own.find((each) => kid.startsWith(`${getKeyRingName(each)}:`));
      if (holder === undefined) continue;
      try {
        return await decryptAsHolder(ciphertext, owner, { kid, keyRing: keyRings.get(holder) });
      } catch (error) {
        // Another key of the value may decrypt it if this one was lost.
        if (!(error instanceof DecryptionError)) throw error;
      }
    }
    throw new DecryptionError();
  };
}
