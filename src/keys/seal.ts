import { createPublicKey, type KeyObject } from 'node:crypto';
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import { z } from 'zod';
import { constantRing, type Key, type KeyRing, keyNamed, type SealingKeys } from './ring';

/** Wrapping of the content key: under a shared key, or for the holder of a private one. */
const WRAPPING = { shared: 'A256GCMKW', pair: 'ECDH-ES+A256KW' } as const;
const CONTENT_ENCRYPTION = 'A256GCM';

/** Ciphertext (JWE compact). The brand keeps it from being mistaken for what it hides. */
export const Sealed = z
  .string()
  .regex(/^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]*\.[\w-]+$/)
  .brand<'Sealed'>();
export type Sealed = z.infer<typeof Sealed>;

/** Error of a value that can't be opened. Its text is always the same, and never the value's. */
export class SealError extends Error {
  constructor() {
    super('The sealed value could not be opened.');
    this.name = 'SealError';
  }
}

export type Sealer = ReturnType<typeof createSealer>;

/**
 * Encrypts at rest: a fresh content key for every value, wrapped by the ring's current key.
 * Older keys of the ring still open their values; `kidOf` tells which are left to re-seal.
 * A value is bound to its `owner` (as `recipient/{id}`): moved to another record it won't open.
 * @param keys a ring that follows the key file, or keys that never change
 * @throws Error at once when constant keys lack the current one or hold one that is not 32 bytes.
 */
export function createSealer(keys: KeyRing | SealingKeys) {
  const ring = 'keys' in keys ? constantRing(keys) : keys;
  return {
    /** @throws KeyRingError when the current key can't be known */
    seal: (plain: string, owner: string): Promise<Sealed> => seal(ring, plain, owner),
    /** @throws SealError for another owner, an unknown key, a changed or foreign text. */
    open: (sealed: Sealed, owner: string): Promise<string> => open(ring, sealed, owner),
    /** Names the key that sealed it. @throws SealError when the text names none */
    kidOf: (sealed: Sealed): string => kidOf(sealed),
  };
}

async function seal(ring: KeyRing, plain: string, owner: string): Promise<Sealed> {
  const keys = ring.forSealing();
  const { current: kid } = keys;
  const key = keyNamed(keys, kid);
  if (key === undefined) throw new Error(`There is no sealing key "${kid}".`);
  const sealed = await new CompactEncrypt(Buffer.from(plain, 'utf8'))
    .setProtectedHeader({ alg: wrappingOf(key), enc: CONTENT_ENCRYPTION, kid, sub: owner })
    .encrypt(publicPart(key));
  return Sealed.parse(sealed);
}

async function open(ring: KeyRing, sealed: Sealed, owner: string): Promise<string> {
  const kid = kidOf(sealed);
  const key = keyNamed(ring.forOpening(kid), kid);
  // A public part seals and opens nothing.
  if (key === undefined || isPublic(key)) throw new SealError();
  const opened = await compactDecrypt(sealed, key, {
    keyManagementAlgorithms: [wrappingOf(key)],
    contentEncryptionAlgorithms: [CONTENT_ENCRYPTION],
  }).catch(() => undefined);
  // The header is authenticated with the text, so its owner can be trusted only now.
  if (opened === undefined || opened.protectedHeader['sub'] !== owner) throw new SealError();
  return Buffer.from(opened.plaintext).toString('utf8');
}

function wrappingOf(key: Key): string {
  return Buffer.isBuffer(key) ? WRAPPING.shared : WRAPPING.pair;
}

function isPublic(key: Key): boolean {
  return !Buffer.isBuffer(key) && key.type === 'public';
}

/** Part of a pair that seals; a shared key is whole. */
function publicPart(key: Key): Buffer | KeyObject {
  return Buffer.isBuffer(key) || isPublic(key) ? key : createPublicKey(key);
}

function kidOf(sealed: Sealed): string {
  try {
    const { kid } = decodeProtectedHeader(sealed);
    if (typeof kid === 'string') return kid;
  } catch {
    // No JWE gets the same answer as a JWE without a key's name.
  }
  throw new SealError();
}
