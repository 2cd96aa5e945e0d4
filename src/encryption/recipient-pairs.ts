import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ENVIRONMENTS, type Env } from '../domain/environment';
import { mayBeRandom, NOT_RANDOM, newKid, refuseWorldReadable, writeKeyFile } from './key-file';
import {
  checkEncryptionKeys,
  createKeyRing,
  type EncryptionKeys,
  followFile,
  type KeyRing,
} from './key-ring';
import { parseJson } from './service-keys';

/** Connector that pays out under its own keys (`live-acme`), or all others. */
export type Holder = Env | `live-${string}`;

export type RecipientKeyRingName = `recipients.${Holder}`;

export type Part = 'private' | 'public';

/** A name has no dot: no private file has the name of another's public one. */
const HOLDER_FILE = /^recipients\.live-([\w-]+)\.json$/;

const CURVE = 'P-256';

const Jwk = z.looseObject({
  kty: z.literal('EC'),
  crv: z.literal(CURVE),
  x: z.string(),
  y: z.string(),
  /** Private part. */
  d: z.string().optional(),
});
const KeyRingFile = z.object({ current: z.string(), keys: z.record(z.string(), Jwk) });

export function getHolder(connector: string): Holder {
  return `live-${connector}`;
}

export function getKeyRingName(holder: Holder): RecipientKeyRingName {
  return `recipients.${holder}`;
}

export function toHolder(name: RecipientKeyRingName): Holder {
  const holder = name.slice('recipients.'.length);
  return holder === 'sandbox' || holder === 'live'
    ? holder
    : getHolder(holder.slice('live-'.length));
}

export function findHolder(dir: string, environment: Env, connector: string): Holder {
  const own = getHolder(connector);
  const hasOwn = environment === 'live' && existsSync(keyRingPath(dir, own, 'private'));
  return hasOwn ? own : environment;
}

export function keyRingPath(dir: string, holder: Holder, part: Part): string {
  const suffix = part === 'public' ? '.public.json' : '.json';
  return join(dir, `${getKeyRingName(holder)}${suffix}`);
}

export function listHolders(dir: string): Holder[] {
  const names = existsSync(dir) ? readdirSync(dir) : [];
  const connectors = names.flatMap((name) => HOLDER_FILE.exec(name)?.[1] ?? []);
  return [...ENVIRONMENTS, ...connectors.toSorted().map(getHolder)];
}

/** @throws Error that never quotes the text */
function parsePairs(text: string, holder: Holder, part: Part): EncryptionKeys {
  const keyRingName = getKeyRingName(holder);
  const { current, keys } = KeyRingFile.parse(parseJson(text));
  const entries = Object.entries(keys).map(([kid, jwk]) => {
    if (!kid.startsWith(`${keyRingName}:`))
      throw new Error(`A key of ${keyRingName} has a foreign name.`);
    return [kid, importKey(kid, jwk, part)] as const;
  });
  const pairs = { current, keys: Object.fromEntries(entries) };
  checkEncryptionKeys(pairs);
  return pairs;
}

/** @throws Error that never quotes the key */
function importKey(kid: string, jwk: z.infer<typeof Jwk>, part: Part): KeyObject {
  let reason = `is no key of ${CURVE}`;
  try {
    const key = { key: jwk, format: 'jwk' } as const;
    const publicKey = createPublicKey(key);
    if (part === 'public') return publicKey;
    const privateKey = createPrivateKey(key);
    if (verify('sha256', PROBE, publicKey, sign('sha256', PROBE, privateKey))) {
      if (mayBeRandom(Buffer.from(jwk.d ?? '', 'base64url'))) return privateKey;
      reason = NOT_RANDOM;
    }
  } catch {
    // The error may quote the key.
  }
  throw new Error(`The ${part} part of ${kid} ${reason}.`);
}

/** Text that a pair signs and verifies, to detect a private key of another pair. */
const PROBE = Buffer.from('pair');

/** @throws Error when the file is missing, invalid or, with private keys, world-readable */
export function followPairs(dir: string, holder: Holder, part: Part): KeyRing {
  const path = keyRingPath(dir, holder, part);
  if (!existsSync(path)) {
    throw new Error(`${path} is missing (KEYS_DIR): \`keys split\` creates it.`);
  }
  if (part === 'private') refuseWorldReadable(path);
  const file = followFile(path, (text) => parsePairs(text, holder, part));
  return createKeyRing(file, (keys) => keys);
}

const PUBLIC_MODE = 0o644;

/**
 * Creates only what is missing.
 * @param more holders besides those that share the key ring of an environment
 * @returns paths of the files that were written
 */
export function createRecipientKeyRings(
  dir: string,
  now: Date,
  more: readonly Holder[] = [],
): string[] {
  return [...ENVIRONMENTS, ...more].flatMap((holder) => createRecipientKeyRing(dir, holder, now));
}

/** @returns paths of the files that were written */
export function createRecipientKeyRing(dir: string, holder: Holder, now: Date): string[] {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = keyRingPath(dir, holder, 'private');
  if (existsSync(path)) return publish(dir, holder);
  const { kid, key } = newPair(holder, now);
  writePairs(path, { current: kid, keys: { [kid]: key } });
  return [path, ...publish(dir, holder)];
}

/**
 * Repairs a rotation that stopped between the two files: the API would encrypt with a pair that is
 * about to be removed.
 */
export function publishPairs(dir: string): void {
  for (const holder of listHolders(dir)) publish(dir, holder);
}

/** @throws Error when the file is missing or invalid */
export function readPairs(dir: string, holder: Holder): EncryptionKeys {
  const text = readFileSync(keyRingPath(dir, holder, 'private'), 'utf8');
  return parsePairs(text, holder, 'private');
}

/** Adds a pair, which becomes current. @returns its name */
export function addPair(dir: string, holder: Holder, now: Date): string {
  const { keys } = readPairs(dir, holder);
  const { kid, key } = newPair(holder, now);
  // Connectors need the private key before the API encrypts with the public one.
  writePairs(keyRingPath(dir, holder, 'private'), {
    current: kid,
    keys: { ...keys, [kid]: key },
  });
  publish(dir, holder);
  return kid;
}

/** Values that the pair encrypted are lost. */
export function removePair(dir: string, holder: Holder, kid: string): void {
  const { current, keys } = readPairs(dir, holder);
  if (current === kid) throw new Error(`${kid} is the current key.`);
  const { [kid]: _removed, ...remaining } = keys;
  writePairs(keyRingPath(dir, holder, 'private'), { current, keys: remaining });
  publish(dir, holder);
}

/** @returns path of a written file */
function publish(dir: string, holder: Holder): string[] {
  const { current, keys } = readPairs(dir, holder);
  const path = keyRingPath(dir, holder, 'public');
  const parts = Object.entries(keys).flatMap(([kid, key]) =>
    Buffer.isBuffer(key) ? [] : [[kid, createPublicKey(key)] as const],
  );
  const text = serializeKeys({ current, keys: Object.fromEntries(parts) });
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return [];
  writeKeyFile(path, text, PUBLIC_MODE);
  return [path];
}

function writePairs(path: string, keyRing: EncryptionKeys): void {
  writeKeyFile(path, serializeKeys(keyRing));
}

function serializeKeys({ current, keys }: EncryptionKeys): string {
  const jwks = Object.entries(keys).flatMap(([kid, key]) =>
    Buffer.isBuffer(key) ? [] : [[kid, key.export({ format: 'jwk' })] as const],
  );
  return `${JSON.stringify({ current, keys: Object.fromEntries(jwks) }, null, 2)}\n`;
}

function newPair(holder: Holder, now: Date): { kid: string; key: KeyObject } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { kid: `${getKeyRingName(holder)}:${newKid(now)}`, key: privateKey };
}
