import type { RecipientDetails } from '../../src/domain/payout/recipient';

/** Fields that name nobody. */
const HARMLESS = new Set(['type', 'country']);
/** Length from which a value is also searched inside of words. */
const WORD_LENGTH = 4;
/** Length from which digits count as a part of a number. */
const DIGITS = /\d{6,}/g;

/**
 * Says whether a text has anything of a recipient, so that it must go no further. Spaces and
 * punctuation do not hide it.
 */
export function quotesRecipient(text: string, recipient: RecipientDetails): boolean {
  const words = text.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  const joined = words.join('');
  const numbers = joined.match(DIGITS) ?? [];
  return Object.entries(recipient).some(([name, value]) => {
    if (value === null || HARMLESS.has(name)) return false;
    const sought = value.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
    if (sought === '') return false;
    if (numbers.some((number) => sought.includes(number))) return true;
    return sought.length < WORD_LENGTH ? words.includes(sought) : joined.includes(sought);
  });
}
