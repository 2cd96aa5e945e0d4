import { isSEPACountry, isValidBIC, isValidIBAN } from 'ibantools';
import type { RecipientField } from './rails';
import type { CardScheme, RecipientDetails, RecipientFacts } from './recipient';

type Needed = 'type' | 'first_name' | 'last_name';
type Optional = Exclude<keyof RecipientDetails, Needed> | 'last4' | 'scheme';

/** A recipient as it was sent; null means absent. @see docs/api.md#recipients */
export type GivenRecipient = Pick<RecipientDetails, Needed> & {
  [Field in Optional]?: string | null | undefined;
};

/** Fault of a field, in words that never repeat its value. */
export interface RecipientFault {
  field: keyof GivenRecipient;
  message: string;
}

const CARD_ONLY = ['card_number', 'expiry_month', 'expiry_year', 'scheme'] as const;
const CARD_NEEDS = ['card_number', 'expiry_month', 'expiry_year', 'date_of_birth'] as const;
const UK_NEEDS = ['sort_code', 'account_number'] as const;
const BANK_ONLY = ['iban', 'bic', 'sort_code', 'account_number'] as const;

/** SEPA members that the library's list does not have yet. */
const SEPA_SINCE_2024: ReadonlySet<string> = new Set(['AL', 'MD', 'ME', 'MK', 'RS']);

const BIRTH_YEAR_MIN = 1900;

/** Whether the text has 12 to 19 digits, the last of which checks the others (ISO/IEC 7812). */
export function isCardNumber(text: string): boolean {
  if (!/^\d{12,19}$/.test(text)) return false;
  const sum = [...text].reverse().reduce((total, character, at) => {
    const digit = Number(character) * (at % 2 === 0 ? 1 : 2);
    return total + (digit > 9 ? digit - 9 : digit);
  }, 0);
  return sum % 10 === 0;
}

/**
 * Card network by the number's first digits; null for networks that no payout goes to.
 * @see docs/api.md#recipients
 */
export function schemeOf(cardNumber: string): CardScheme | null {
  if (cardNumber.startsWith('4')) return 'visa';
  if (/^3[47]/.test(cardNumber)) return 'amex';
  const six = Number(cardNumber.slice(0, 6));
  const isMastercard = (six >= 510_000 && six < 560_000) || (six >= 222_100 && six < 272_100);
  return isMastercard ? 'mastercard' : null;
}

/** Writes an IBAN in capitals and without the spaces that people put into it. */
function normaliseIban(text: string): string {
  return text.replaceAll(' ', '').toUpperCase();
}

/** Checks country, length, form and check digits; spaces and small letters are fine. */
export function isIban(text: string): boolean {
  return /^[A-Za-z0-9 ]+$/.test(text) && isValidIBAN(normaliseIban(text));
}

/** Whether the text has the form of a BIC, of 8 or 11 characters. */
export function isBic(text: string): boolean {
  return isValidBIC(text);
}

/** Whether the text is a real day, `YYYY-MM-DD`, from 1900 on. */
export function isBirthDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || Number(text.slice(0, 4)) < BIRTH_YEAR_MIN) return false;
  const day = new Date(`${text}T00:00:00.000Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/**
 * Lists the fields that are missing or contradict each other, all at once. A field that is not
 * well-formed counts as given and is compared with nothing.
 */
export function recipientFaults(given: GivenRecipient): RecipientFault[] {
  return given.type === 'card' ? cardFaults(given) : bankFaults(given);
}

function cardFaults(given: GivenRecipient): RecipientFault[] {
  const { card_number: number, scheme } = given;
  const faults = [...foreign(given, BANK_ONLY), ...missing(given, CARD_NEEDS)];
  if (!isGiven(number) || !isCardNumber(number)) return faults;
  if (isGiven(scheme) && scheme !== schemeOf(number)) {
    faults.push({ field: 'scheme', message: 'is not the network of card_number' });
  }
  return [...faults, ...last4Faults(given, number)];
}

function bankFaults(given: GivenRecipient): RecipientFault[] {
  const { iban, sort_code, account_number } = given;
  const faults = foreign(given, CARD_ONLY);
  const isUk = isGiven(sort_code) || isGiven(account_number);
  if (!isGiven(iban)) {
    const needed = isUk ? UK_NEEDS : (['iban', ...UK_NEEDS] as const);
    return [...faults, ...missing(given, needed), ...last4Faults(given, account_number)];
  }
  if (isUk) faults.push(...missing(given, UK_NEEDS));
  if (!isIban(iban)) return faults;
  if (!isInSepa(normaliseIban(iban))) faults.push(...missing(given, ['bic']));
  return [...faults, ...last4Faults(given, normaliseIban(iban))];
}

function foreign(
  given: GivenRecipient,
  fields: readonly (keyof GivenRecipient)[],
): RecipientFault[] {
  const kind = given.type === 'card' ? 'a card' : 'a bank account';
  return fields
    .filter((field) => isGiven(given[field]))
    .map((field) => ({ field, message: `does not belong to ${kind}` }));
}

function missing(
  given: GivenRecipient,
  fields: readonly (keyof GivenRecipient)[],
): RecipientFault[] {
  return fields
    .filter((field) => !isGiven(given[field]))
    .map((field) => ({ field, message: 'is required' }));
}

function last4Faults(
  { last4 }: GivenRecipient,
  number: string | null | undefined,
): RecipientFault[] {
  if (!isGiven(last4) || !isGiven(number) || number === '' || number.endsWith(last4)) return [];
  return [{ field: 'last4', message: 'is not how the number ends' }];
}

function isGiven<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

/**
 * Lists the faults that depend on the time, in UTC: a card past the last day of its month, a birth
 * in the future.
 * @see docs/api.md#recipients
 */
export function faultsAt(details: RecipientDetails, now: Date): RecipientFault[] {
  const faults: RecipientFault[] = [];
  const today = now.toISOString();
  const expires = cardExpires(details);
  if (expires !== null && expires < today.slice(0, 'YYYY-MM'.length)) {
    const message = 'the card has expired';
    faults.push({ field: 'expiry_month', message }, { field: 'expiry_year', message });
  }
  const { date_of_birth } = details;
  if (date_of_birth !== null && date_of_birth >= today.slice(0, 'YYYY-MM-DD'.length)) {
    faults.push({ field: 'date_of_birth', message: 'must be in the past' });
  }
  return faults;
}

/** Details to keep, in one form; `last4` and `scheme` only repeat the number and are left out. */
export function recipientDetails(given: GivenRecipient): RecipientDetails {
  const { type, first_name, last_name } = given;
  return {
    type,
    first_name,
    last_name,
    card_number: given.card_number ?? null,
    expiry_month: given.expiry_month ?? null,
    expiry_year: given.expiry_year ?? null,
    date_of_birth: given.date_of_birth ?? null,
    iban: isGiven(given.iban) ? normaliseIban(given.iban) : null,
    bic: given.bic?.toUpperCase() ?? null,
    sort_code: given.sort_code ?? null,
    account_number: given.account_number ?? null,
    address_line1: given.address_line1 ?? null,
    city: given.city ?? null,
    postal_code: given.postal_code ?? null,
    country: given.country ?? null,
    email: given.email ?? null,
    reference: given.reference ?? null,
    parent_payment_reference: given.parent_payment_reference ?? null,
  };
}

const RAIL_FIELDS: readonly RecipientField[] = [
  'card_number',
  'date_of_birth',
  'iban',
  'sort_code',
  'account_number',
  'address_line1',
  'city',
  'postal_code',
];

/** Facts that may stand in clear. */
export function recipientFacts(details: RecipientDetails): RecipientFacts {
  const { type, card_number, iban } = details;
  return {
    type,
    scheme: card_number === null ? null : schemeOf(card_number),
    has: RAIL_FIELDS.filter((field) => details[field] !== null),
    card_expires: cardExpires(details),
    iban_in_sepa: iban === null ? null : isInSepa(iban),
  };
}

/**
 * Last four characters of the card number, or else of the IBAN, or else of the account number.
 * @see docs/api.md#recipients
 */
export function last4Of({ card_number, iban, account_number }: RecipientDetails): string {
  return (card_number ?? iban ?? account_number ?? '').slice(-4);
}

function cardExpires({ expiry_month, expiry_year }: RecipientDetails): string | null {
  return expiry_month === null || expiry_year === null ? null : `${expiry_year}-${expiry_month}`;
}

function isInSepa(iban: string): boolean {
  const country = iban.slice(0, 2);
  return isSEPACountry(country) || SEPA_SINCE_2024.has(country);
}
