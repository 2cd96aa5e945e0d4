import { isValidIBAN } from 'ibantools';

/** Spaces, visible or not, and hyphens, which people paste. */
const SEPARATORS = /[\s\p{Z}\p{Cf}\p{Pd}\u2212]/gu;

export function normalizeIban(text: string): string {
  return text.replace(SEPARATORS, '').toUpperCase();
}

/** Accepts spaces and hyphens of any kind, and lower case. */
export function isIban(text: string): boolean {
  return /^[A-Za-z0-9]+$/.test(text.replace(SEPARATORS, '')) && isValidIBAN(normalizeIban(text));
}

/** Writes an IBAN as `normalizeIban` does, and another id of a bank account as the bank does. */
export function normalizeAccount(text: string): string {
  return isIban(text) ? normalizeIban(text) : text.trim();
}
