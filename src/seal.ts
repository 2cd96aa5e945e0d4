import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import { z } from 'zod';
import type { Keys } from './config';

const KEY_WRAPPING = 'A256GCMKW';
const CONTENT_ENCRYPTION = 'A256GCM';
const KEY_BYTES = 32;

/** Ciphertext (JWE compact). The brand keeps it from being mistaken for what it hides. */
export const Sealed = z
  .string()
  .regex(/^[\w-]+\.[\w-]+\.[\w-]+\.[\w-]*\.[\w-]+$/)
  .brand<'Sealed'>();
export type Sealed = z.infer<typeof Sealed>;

/** It could not be opened. One text for every reason: it never carries what was sealed. */
export class SealError extends Error {
  constructor() {
    super('The sealed value could not be opened.');
    this.name = 'SealError';
  }
}

export type Sealer = ReturnType<typeof createSealer>;

/**
 * Encryption at rest: a fresh content key for every value, wrapped by the key named `current`.
 * Older keys of the ring still open what they sealed; `kidOf` says what is left to re-seal.
 * A value is bound to its `owner` (as `recipient/{id}`): moved to another record it won't open.
 * @throws Error at once when the ring lacks its current key or holds one that is not 32 bytes.
 */
export function createSealer(ring: Keys['seal']) {
  for (const [kid, key] of Object.entries(ring.keys)) {
    if (key.length !== KEY_BYTES) throw new Error(`Sealing key "${kid}" is not 32 bytes long.`);
  }
  const current = Object.hasOwn(ring.keys, ring.current) ? ring.keys[ring.current] : undefined;
  if (current === undefined) throw new Error(`There is no sealing key "${ring.current}".`);
  return {
    seal: async (plain: string, owner: string): Promise<Sealed> =>
      Sealed.parse(
        await new CompactEncrypt(Buffer.from(plain, 'utf8'))
          .setProtectedHeader({
            alg: KEY_WRAPPING,
            enc: CONTENT_ENCRYPTION,
            kid: ring.current,
            sub: owner,
          })
          .encrypt(current),
      ),
    /** @throws SealError for another owner, an unknown key, a changed or foreign text. */
    open: (sealed: Sealed, owner: string): Promise<string> => open(ring, sealed, owner),
    /** Which key sealed it. @throws SealError when the text names none. */
    kidOf: (sealed: Sealed): string => kidOf(sealed),
  };
}

async function open(ring: Keys['seal'], sealed: Sealed, owner: string): Promise<string> {
  const kid = kidOf(sealed);
  const key = Object.hasOwn(ring.keys, kid) ? ring.keys[kid] : undefined;
  if (key === undefined) throw new SealError();
  const opened = await compactDecrypt(sealed, key, {
    keyManagementAlgorithms: [KEY_WRAPPING],
    contentEncryptionAlgorithms: [CONTENT_ENCRYPTION],
  }).catch(() => undefined);
  // The header is authenticated with the text, so its owner can be trusted only now.
  if (opened === undefined || opened.protectedHeader['sub'] !== owner) throw new SealError();
  return Buffer.from(opened.plaintext).toString('utf8');
}

function kidOf(sealed: Sealed): string {
  try {
    const { kid } = decodeProtectedHeader(sealed);
    if (typeof kid === 'string') return kid;
  } catch {
    // Not a JWE: the same answer as one without a key's name.
  }
  throw new SealError();
}
