import { createHash } from 'node:crypto';
import { encodeIdentifier } from '../domain/shape';

const NO_REFERENCE = /^(?:NOTPROVIDED|NONREF|NONE|N\/A|)$/i;
/** A callback_id, up to 200 characters, contains it. */
const LENGTH_MAX = 100;
const SHOWN_MAX = 33;

/**
 * Reads a reference of a bank's file as an identifier, so that no two become one. The end of one that
 * is too long becomes a hash, after `%:`, which no encoding has.
 * @see docs/statements.md#references
 */
export function parseReference(text: string | undefined): string | null {
  const reference = text?.trim() ?? '';
  if (NO_REFERENCE.test(reference)) return null;
  const encoded = encodeIdentifier(reference);
  if (encoded.length <= LENGTH_MAX) return encoded;
  const digest = createHash('sha256').update(reference).digest('hex');
  return `${encoded.slice(0, SHOWN_MAX)}%:${digest}`;
}
