import de from './de.json';
import { en } from './en';
import es from './es.json';
import fr from './fr.json';
import it from './it.json';
import nl from './nl.json';
import pl from './pl.json';
import pt from './pt.json';
import type { Texts } from './texts';

/** Languages in the order of the switch, by their own names. `pt` is European Portuguese. */
export const TEXTS = { de, en, es, fr, it, nl, pl, pt } as const satisfies Record<string, Texts>;

export type LanguageCode = keyof typeof TEXTS;

export const LANGUAGE_CODES = Object.keys(TEXTS).filter(isLanguageCode);

export function isLanguageCode(text: string): text is LanguageCode {
  return Object.hasOwn(TEXTS, text);
}
