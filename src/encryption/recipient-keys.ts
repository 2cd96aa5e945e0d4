import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Env } from '../domain/environment';
import { createEncrypter, type Encrypter } from './encrypter';
import { refuseWorldReadable } from './file-mode';
import { followFile } from './followed-file';
import { checkEncryptionKeys, createKeyRing, type EncryptionKeys, type KeyRing } from './key-ring';
import { mayBeRandom, NOT_RANDOM } from './random-key';
import { parseJson } from './service-keys';

export const RECIPIENT_KEY_RINGS = {
  sandbox: 'recipients.sandbox',
  live: 'recipients.live',
} as const satisfies Record<Env, string>;

type Part = 'private' | 'public';

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

export function keyRingPath(dir: string, environment: Env, part: Part): string {
  const suffix = part === 'public' ? '.public.json' : '.json';
  return join(dir, `${RECIPIENT_KEY_RINGS[environment]}${suffix}`);
}

/** Parses key pairs, each as a JWK. @throws Error that never quotes the text */
export function parsePairs(text: string, environment: Env, part: Part): EncryptionKeys {
  const keyRingName = RECIPIENT_KEY_RINGS[environment];
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

/** Text that each pair signs and verifies, to detect a private key of another pair. */
const PROBE = Buffer.from('pair');

/** @throws Error when the file is missing, invalid or, with private keys, world-readable */
export function followPairs(dir: string, environment: Env, part: Part): KeyRing {
  const path = keyRingPath(dir, environment, part);
  if (!existsSync(path)) {
    throw new Error(`${path} is missing (KEYS_DIR): \`keys split\` creates it.`);
  }
  if (part === 'private') refuseWorldReadable(path);
  const file = followFile(path, (text) => parsePairs(text, environment, part));
  return createKeyRing(file, (keys) => keys);
}

/**
 * Creates encrypters from public keys only, so they cannot decrypt.
 * @throws Error when a file is missing or invalid
 */
export function createRecipientEncrypters(
  dir: string,
): Record<Env, Pick<Encrypter, 'encrypt' | 'getKid'>> {
  return {
    sandbox: createEncrypter(followPairs(dir, 'sandbox', 'public')),
    live: createEncrypter(followPairs(dir, 'live', 'public')),
  };
}

/** @throws Error when a file is missing or invalid */
export function createDetailsDecrypter(dir: string, environment: Env): Pick<Encrypter, 'decrypt'> {
  return createEncrypter(followPairs(dir, environment, 'private'));
}
