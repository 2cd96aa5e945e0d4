import type { RecipientDetails } from '../../src/domain/payout/recipient';

const HARMLESS = new Set(['type', 'country']);
/** Values of this length also count inside of words. */
const WORD_LENGTH = 4;
/** Digits of this length count as a part of a number. */
const DIGITS = /\d{6,}/g;

/** Detects any data of a recipient, also behind spaces and punctuation. */
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
