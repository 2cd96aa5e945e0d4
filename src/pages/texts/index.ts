import { de } from './de';
import { en } from './en';
import { es } from './es';
import { fr } from './fr';
import { it } from './it';
import { nl } from './nl';
import { pl } from './pl';
import { pt } from './pt';
import type { Texts } from './texts';

/** Languages in the order of the switch, by their own names. */
export const TEXTS = { de, en, es, fr, it, nl, pl, pt } as const satisfies Record<string, Texts>;

export type LanguageCode = keyof typeof TEXTS;

export const LANGUAGE_CODES = Object.keys(TEXTS).filter(isLanguageCode);

export function isLanguageCode(text: string): text is LanguageCode {
  return Object.hasOwn(TEXTS, text);
}
