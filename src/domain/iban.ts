import { isValidIBAN } from 'ibantools';

export function normalizeIban(text: string): string {
  return text.replaceAll(' ', '').toUpperCase();
}

/** Accepts spaces and lower case. */
export function isIban(text: string): boolean {
  return /^[A-Za-z0-9 ]+$/.test(text) && isValidIBAN(normalizeIban(text));
}
