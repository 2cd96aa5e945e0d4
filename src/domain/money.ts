import { MINOR_UNIT_DIGITS } from './currencies';

/**
 * How many digits of an amount in minor units stand after the decimal point.
 * @throws RangeError for a code that isn't in the currency table
 * @see spec §1
 */
export function minorUnitDigits(currency: string): number {
  const digits = MINOR_UNIT_DIGITS.get(currency);
  if (digits === undefined) throw new RangeError(`Unknown currency: ${currency}`);
  return digits;
}

/**
 * An amount for people to read: `formatMoney(1050, 'EUR')` is `€10.50`, JPY has no decimals, KWD
 * three. Exact for every safe integer, also negative ones: the decimal text is made without
 * division, and the digits are ISO 4217's, not those of the locale data.
 * @param amountMinor integer, minor units
 * @throws RangeError for an amount that isn't a safe integer, or an unknown currency
 */
export function formatMoney(amountMinor: number, currency: string, locale = 'en'): string {
  const digits = minorUnitDigits(currency);
  return new Intl.NumberFormat(locale, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(decimalText(amountMinor, digits));
}

function decimalText(amountMinor: number, digits: number): `${number}` {
  if (!Number.isSafeInteger(amountMinor)) throw new RangeError('The amount must be an integer');
  const padded = String(Math.abs(amountMinor)).padStart(digits + 1, '0');
  const whole = padded.slice(0, padded.length - digits);
  const fraction = padded.slice(padded.length - digits);
  const text = `${amountMinor < 0 ? '-' : ''}${whole}${fraction && '.'}${fraction}`;
  if (!isNumeric(text)) throw new RangeError('The amount must be an integer');
  return text;
}

/** Lets the exact text reach Intl, which takes a decimal string only as a numeric type. */
function isNumeric(text: string): text is `${number}` {
  return /^-?\d+(?:\.\d+)?$/.test(text);
}
