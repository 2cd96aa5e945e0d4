import { createPublicKey } from 'node:crypto';
import { existsSync } from 'node:fs';
import { GeneralEncrypt, generalDecrypt } from 'jose';
import { z } from 'zod';
import type { Env } from '../domain/environment';
import type { RailId } from '../domain/payout/rails';
import { findRails, type RailFacts } from '../domain/payout/rules';
import {
  CONTENT_ENCRYPTION,
  createEncrypter,
  DecryptionError,
  Encrypted,
  type Encrypter,
  findKid,
  WRAPPING,
} from './encrypter';
import { findKey, type KeyRing } from './key-ring';
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
  const build = (environment: Env) => {
    keyRings.get(environment);
    const find = createHolderFinder(keyRings, environment, listPayers);
    return {
      encrypt: async (details: string, owner: string, facts?: RailFacts) =>
        await encryptForHolders(details, owner, find.all(facts)),
      encryptFor: (connector: string, details: string, owner: string) =>
        encryptForHolders(details, owner, [find.one(connector)]),
      getKid: getRecipientKid,
    };
  };
  return { sandbox: build('sandbox'), live: build('live') };
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
  const find = (environment: Env) => createHolderFinder(keyRings, environment, listPayers);
  return {
    encrypt: (environment: Env, facts: RailFacts, value: { text: string; owner: string }) =>
      encryptForHolders(value.text, value.owner, find(environment).all(facts)),
    encryptFor: (environment: Env, connector: string, value: { text: string; owner: string }) =>
      encryptForHolders(value.text, value.owner, [find(environment).one(connector)]),
    getCurrentKidFor: (environment: Env, connector: string) =>
      joinKids([find(environment).one(connector).forEncryption().current]),
    decrypt: createDecrypt(keyRings, () => holders),
    getKid: getRecipientKid,
    getCurrentKid: (environment: Env, facts: RailFacts) =>
      joinKids(
        find(environment)
          .all(facts)
          .map((keyRing) => keyRing.forEncryption().current),
      ),
  };
}

export type RecipientReencrypter = ReturnType<typeof createRecipientReencrypter>;

function getRecipientKid(ciphertext: Encrypted): string {
  return joinKids(listKids(ciphertext));
}

function createHolderFinder(
  { has, get }: ReturnType<typeof followHolders>,
  environment: Env,
  listPayers: ListPayers,
) {
  /** Finds the holder of what one connector decrypts. */
  const findOwn = (connector: string): Holder => {
    const own = getHolder(connector);
    return environment === 'live' && has(own) ? own : environment;
  };
  return {
    one: (connector: string): KeyRing => get(findOwn(connector)),
    /**
     * Finds the connectors of the rails that can pay a recipient. Those without a key ring share one,
     * which also holds what no rail can pay.
     */
    all: (facts: RailFacts | undefined): KeyRing[] => {
      const payers = facts === undefined ? [] : findRails(facts).flatMap(listPayers);
      const holders = payers.length === 0 ? [environment] : payers.map(findOwn);
      return [...new Set(holders)].toSorted().map(get);
    },
  };
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

const GeneralJwe = z.object({
  recipients: z.array(
    z.object({ encrypted_key: z.string(), header: z.looseObject({ kid: z.string() }) }),
  ),
  protected: z.string(),
  iv: z.string(),
  ciphertext: z.string(),
  tag: z.string(),
});
type GeneralJwe = z.infer<typeof GeneralJwe>;

const SEPARATOR = '+';

/** Joins names of keys that each decrypt a value. */
function joinKids(kids: readonly string[]): string {
  return kids.toSorted().join(SEPARATOR);
}

export function splitKids(kid: string): string[] {
  return kid.split(SEPARATOR);
}

/**
 * Encrypts so that any holder's private key decrypts.
 * @throws KeyRingError when a current key is unknown
 */
async function encryptForHolders(
  plainText: string,
  owner: string,
  keyRings: readonly KeyRing[],
): Promise<Encrypted> {
  const [first, ...others] = keyRings;
  if (first !== undefined && others.length === 0) {
    return await createEncrypter(first).encrypt(plainText, owner);
  }
  const value = new GeneralEncrypt(Buffer.from(plainText, 'utf8'));
  value.setProtectedHeader({ enc: CONTENT_ENCRYPTION, sub: owner });
  for (const keyRing of keyRings) {
    const keys = keyRing.forEncryption();
    const key = findKey(keys, keys.current);
    if (key === undefined || Buffer.isBuffer(key)) throw new Error('A key pair is missing.');
    const publicKey = key.type === 'public' ? key : createPublicKey(key);
    value.addRecipient(publicKey).setUnprotectedHeader({ alg: WRAPPING.pair, kid: keys.current });
  }
  const { recipients, protected: header, iv, ciphertext, tag } = await value.encrypt();
  return Encrypted.parse(JSON.stringify({ recipients, protected: header, iv, ciphertext, tag }));
}

/** @throws DecryptionError when the text names no key */
function listKids(ciphertext: Encrypted): string[] {
  const jwe = parseGeneral(ciphertext);
  if (jwe !== undefined) return jwe.recipients.map(({ header }) => header.kid);
  const kid = findKid(ciphertext);
  if (kid === undefined) throw new DecryptionError();
  return [kid];
}

/**
 * @param kid one of `listKids`
 * @throws DecryptionError for another owner, an unknown key, a changed or foreign text
 */
async function decryptAsHolder(
  ciphertext: Encrypted,
  owner: string,
  { kid, keyRing }: { kid: string; keyRing: KeyRing },
): Promise<string> {
  const jwe = parseGeneral(ciphertext);
  if (jwe === undefined) return await createEncrypter(keyRing).decrypt(ciphertext, owner);
  const key = findKey(keyRing.forDecryption(kid), kid);
  if (key === undefined || Buffer.isBuffer(key) || key.type !== 'private') {
    throw new DecryptionError();
  }
  const recipients = jwe.recipients.filter(({ header }) => header.kid === kid);
  const result = await generalDecrypt({ ...jwe, recipients }, key, {
    keyManagementAlgorithms: [WRAPPING.pair],
    contentEncryptionAlgorithms: [CONTENT_ENCRYPTION],
  }).catch(() => undefined);
  if (result?.protectedHeader?.['sub'] !== owner) throw new DecryptionError();
  return Buffer.from(result.plaintext).toString('utf8');
}

/** A value with one key is in the compact form. */
function parseGeneral(ciphertext: Encrypted): GeneralJwe | undefined {
  if (!ciphertext.startsWith('{')) return undefined;
  try {
    return GeneralJwe.parse(JSON.parse(ciphertext));
  } catch {
    throw new DecryptionError();
  }
}
