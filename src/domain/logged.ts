import { z } from 'zod';

interface Logged {
  /** Whether it shows a valid text. */
  shows: (text: string) => boolean;
  /** Shown unless it quotes what is redacted. */
  mayQuote?: true;
}

/**
 * Text fields that the log of requests shows; it shows numbers, times, UUIDs and words of a closed
 * list anyway. Any other field could identify a person, and is redacted.
 * @see docs/api.md#requests
 */
export const LOGGED = z.registry<Logged>();

/** Every valid text of the field. */
export const WHOLE: Logged = { shows: () => true };

const ID = /^([a-z]{2,6}_)?[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
/** UUID, in most cases with the prefix of its kind. */
export const OWN_ID: Logged = { shows: (text) => ID.test(text) };

/** Code of a bank, of an error or of a country, in an answer. */
export const CODE: Logged = { shows: (text) => /^[A-Za-z_]{1,60}\d{0,4}$/.test(text) };

const WORDS_AND_NUMBER =
  /^([a-z]{1,20}[-_]){0,3}([\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|\d{1,5})$/i;
/** Identifier of the merchant: words of letters before a UUID or a few digits, as in `order-1001`. */
export const IDENTIFIER: Logged = { shows: (text) => WORDS_AND_NUMBER.test(text) };

const LENGTH_MAX = 300;
/** Text of the service. */
export const OWN_TEXT: Logged = { shows: (text) => text.length <= LENGTH_MAX, mayQuote: true };

export function allowWords(words: readonly string[]): Logged {
  return { shows: (text) => words.includes(text) };
}
