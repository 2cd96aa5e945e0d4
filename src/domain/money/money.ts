import { MINOR_UNIT_DIGITS } from './currencies';

/** @throws RangeError for an unknown code */
export function minorUnitDigits(currency: string): number {
  const digits = MINOR_UNIT_DIGITS.get(currency);
  if (digits === undefined) throw new RangeError(`Unknown currency: ${currency}`);
  return digits;
}

/**
 * Formats exactly: `formatMoney(1050, 'EUR')` is `€10.50`. ISO 4217 sets the digits, not the
 * locale.
 * @throws RangeError for a number that isn't a safe integer, or an unknown currency
 */
export function formatMoney(amountMinor: number | bigint, currency: string, locale = 'en'): string {
  const digits = minorUnitDigits(currency);
  return new Intl.NumberFormat(locale, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(decimalText(amountMinor, digits));
}

/** Text where a double would not be exact. */
export function amountInJson(amountMinor: number | bigint): number | string {
  const number = Number(amountMinor);
  return Number.isSafeInteger(number) ? number : String(amountMinor);
}

/**
 * Parses what a user typed: `10.50` EUR is 1050; a comma before three digits may separate
 * thousands.
 * @returns undefined for other text
 */
export function parseMoney(text: string, currency: string): number | undefined {
  const digits = minorUnitDigits(currency);
  if (/,\d{3}$/.test(text.trim())) return undefined;
  const [, whole = '', fraction = ''] = /^(\d{1,11})(?:[.,](\d{1,4}))?$/.exec(text.trim()) ?? [];
  if (whole === '' || fraction.length > digits) return undefined;
  const amount = Number(`${whole}${fraction.padEnd(digits, '0')}`);
  return Number.isSafeInteger(amount) && amount > 0 ? amount : undefined;
}

/**
 * Parses an unsigned decimal of a file: `10.5` EUR is 1050 minor units.
 * @returns undefined for other text, digits beyond the currency's, or an amount that is not exact
 */
export function parseDecimalMoney(text: string, currency: string): number | undefined {
  const digits = minorUnitDigits(currency);
  const [match, whole = '', fraction = ''] = /^\+?(\d{0,20})(?:\.(\d{0,20}))?$/.exec(text) ?? [];
  if (match === undefined || `${whole}${fraction}` === '') return undefined;
  if (/[1-9]/.test(fraction.slice(digits))) return undefined;
  const amount = Number(`${whole}${fraction.slice(0, digits).padEnd(digits, '0')}`);
  return Number.isSafeInteger(amount) ? amount : undefined;
}

/** Formats for a spreadsheet: 1050 EUR is `10.50`. */
export function decimalMoney(amountMinor: number | bigint, currency: string): string {
  return decimalText(amountMinor, minorUnitDigits(currency));
}

function decimalText(amountMinor: number | bigint, digits: number): `${number}` {
  if (typeof amountMinor === 'number' && !Number.isSafeInteger(amountMinor)) {
    throw new RangeError('The amount must be an integer');
  }
  const padded = String(amountMinor)
    .replace('-', '')
    .padStart(digits + 1, '0');
  const whole = padded.slice(0, padded.length - digits);
  const fraction = padded.slice(padded.length - digits);
  const text = `${amountMinor < 0 ? '-' : ''}${whole}${fraction && '.'}${fraction}`;
  if (!isNumeric(text)) throw new RangeError('The amount must be an integer');
  return text;
}

function isNumeric(text: string): text is `${number}` {
  return /^-?\d+(?:\.\d+)?$/.test(text);
}
