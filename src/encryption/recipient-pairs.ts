import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ENVIRONMENTS, type Env } from '../domain/environment';
import { refuseWorldReadable } from './file-mode';
import { followFile } from './followed-file';
import { checkEncryptionKeys, createKeyRing, type EncryptionKeys, type KeyRing } from './key-ring';
import { mayBeRandom, NOT_RANDOM } from './random-key';
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
export function parsePairs(text: string, holder: Holder, part: Part): EncryptionKeys {
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
