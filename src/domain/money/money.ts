import { assetRules, formatDecimalUnits, formatUnits, parseBookCurrency } from '../crypto/assets';

/**
 * ISO 4217 codes (amendment 180, 2026) by minor-unit digits; `Intl` differs for IQD, LBP and UGX.
 * Codes without a minor unit are not accepted.
 */
const CODES: Readonly<Record<number, string>> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD
    CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP
    GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK
    LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO
    NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS
    SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST
    XAD XCD XCG YER ZAR ZMW ZWG`,
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
};
/** @see docs/api.md#money-json-text */
export const MINOR_UNIT_DIGITS: ReadonlyMap<string, number> = new Map(
  Object.entries(CODES).flatMap(([digits, codes]) =>
    codes.split(/\s+/).map((code): [string, number] => [code, Number(digits)]),
  ),
);

export const CURRENCIES: readonly string[] = Object.freeze([...MINOR_UNIT_DIGITS.keys()].sort());

export function isCurrency(code: string): boolean {
  return MINOR_UNIT_DIGITS.has(code);
}

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

/** @param currency ISO 4217, or an asset's book currency, such as `ETH.ethereum` */
export function formatAmount(amount: number | bigint | string, currency: string): string {
  const asset = parseBookCurrency(currency);
  return asset === undefined
    ? formatMoney(BigInt(amount), currency)
    : formatUnits(BigInt(amount), asset);
}

/** Formats for a spreadsheet: 1050 EUR is `10.50`. */
export function decimalAmount(amount: bigint, currency: string): string {
  const pair = parseBookCurrency(currency);
  if (pair === undefined) return decimalMoney(amount, currency);
  const decimals = assetRules(pair.asset, pair.network)?.decimals ?? 0;
  return formatDecimalUnits(amount, decimals);
}

export function formatCurrency(currency: string): string {
  const asset = parseBookCurrency(currency);
  return asset === undefined ? currency : `${asset.asset} on ${asset.network}`;
}

/** Exists in every account. @see docs/decisions.md#payouts */
export const MAIN_BALANCE = 'main';

/** Names are part of a field path in the ledger. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export function isBalanceAccountName(name: string): boolean {
  return NAME.test(name);
}

/** @see docs/api.md#balances */
export const BALANCE_TRANSACTION_TYPES = [
  'payment',
  'refund',
  'refund_failure',
  'payout',
  'payout_failure',
  'payout_return',
  'chargeback',
  'chargeback_reversal',
  'funding',
  'adjustment',
  'crypto_payment',
  'crypto_settlement',
  'crypto_settlement_failure',
] as const;

export type BalanceTransactionType = (typeof BALANCE_TRANSACTION_TYPES)[number];
