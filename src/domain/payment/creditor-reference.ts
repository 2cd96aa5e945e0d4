/** Few to type, and enough for 10^16 payments. */
export const REFERENCE_DIGITS = 16;
const FORM = /^RF\d{2}[0-9A-Z]{1,21}$/;
const OURS = new RegExp(`RF\\d{${REFERENCE_DIGITS + 2}}`, 'g');

/** ISO 11649. */
export function buildCreditorReference(digits: string): string {
  const check = 98n - computeRest(`RF00${digits}`);
  return `RF${String(check).padStart(2, '0')}${digits}`;
}

/** @param text upper case, without spaces */
export function isCreditorReference(text: string): boolean {
  return FORM.test(text) && computeRest(text) === 1n;
}

/**
 * Counts only letters and digits: banks cut texts into lines anywhere, and payers add words and
 * spaces.
 * @returns null for none, and for several, among which only an operator can choose
 */
export function findCreditorReference(texts: readonly string[]): string | null {
  const [reference, ...others] = new Set(texts.flatMap(listCreditorReferences));
  return reference === undefined || others.length > 0 ? null : reference;
}

export function listCreditorReferences(text: string): string[] {
  const letters = text.replace(/[^0-9A-Za-z]/g, '').toUpperCase();
  return [...letters.matchAll(OURS)].map(([reference]) => reference).filter(isCreditorReference);
}

/** ISO 7064 modulo 97: the first four characters count last, and A as 10. */
function computeRest(reference: string): bigint {
  const text = `${reference.slice(4)}${reference.slice(0, 4)}`;
  return BigInt(text.replace(/[A-Z]/g, (letter) => String(Number.parseInt(letter, 36)))) % 97n;
}
