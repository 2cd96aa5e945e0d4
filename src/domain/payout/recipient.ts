import { isSEPACountry } from 'ibantools';
import { isIban, normalizeIban } from '../banks/iban';
import { isDay } from '../shape';
import { RAIL_FIELDS, type RecipientField, type RecipientType } from './rails';
import { findSepaFaults, type SepaFault } from './sepa-text';

/** @see docs/api.md#recipients */
export const CARD_SCHEMES = ['visa', 'mastercard', 'amex'] as const;
type CardScheme = (typeof CARD_SCHEMES)[number];

/** Plain text: enough to check a rail, not enough to identify the recipient. */
export interface RecipientFacts {
  type: RecipientType;
  /** Null for bank accounts, and for other networks. */
  scheme: CardScheme | null;
  has: RecipientField[];
  /** Last valid month, `YYYY-MM`; null for bank accounts. */
  card_expires: string | null;
  /** Null without an IBAN. */
  iban_in_sepa: boolean | null;
  /** Fields that no SEPA transfer can carry. */
  sepa_faults?: SepaFault[];
}

/** Encrypted on arrival, decrypted only to send it to a bank. */
export interface RecipientDetails {
  type: RecipientType;
  first_name: string;
  last_name: string;
  card_number: string | null;
  /** MM */
  expiry_month: string | null;
  /** YYYY */
  expiry_year: string | null;
  /** YYYY-MM-DD */
  date_of_birth: string | null;
  iban: string | null;
  bic: string | null;
  sort_code: string | null;
  account_number: string | null;
  address_line1: string | null;
  city: string | null;
  postal_code: string | null;
  country: string | null;
  email: string | null;
  reference: string | null;
  parent_payment_reference: string | null;
}

type RequiredKey = 'type' | 'first_name' | 'last_name';
type OptionalKey = Exclude<keyof RecipientDetails, RequiredKey> | 'last4' | 'scheme';

export type RecipientInput = Pick<RecipientDetails, RequiredKey> & {
  [Field in OptionalKey]?: string | null | undefined;
};

/** Message never contains the value. */
interface RecipientFault {
  field: keyof RecipientInput;
  message: string;
}

const CARD_ONLY = ['card_number', 'expiry_month', 'expiry_year', 'scheme'] as const;
const CARD_NEEDS = ['card_number', 'expiry_month', 'expiry_year', 'date_of_birth'] as const;
const UK_NEEDS = ['sort_code', 'account_number'] as const;
const BANK_ONLY = ['iban', 'bic', 'sort_code', 'account_number'] as const;

/** Members that the library lacks. */
const SEPA_SINCE_2024: ReadonlySet<string> = new Set(['AL', 'MD', 'ME', 'MK', 'RS']);

const BIRTH_YEAR_MIN = 1900;

/** 12 to 19 digits with a valid check digit (ISO/IEC 7812). */
export function isCardNumber(text: string): boolean {
  if (!/^\d{12,19}$/.test(text)) return false;
  const sum = [...text].reverse().reduce((total, character, at) => {
    const digit = Number(character) * (at % 2 === 0 ? 1 : 2);
    return total + (digit > 9 ? digit - 9 : digit);
  }, 0);
  return sum % 10 === 0;
}

/** @returns null for networks without payouts. @see docs/api.md#recipients */
export function detectScheme(cardNumber: string): CardScheme | null {
  if (cardNumber.startsWith('4')) return 'visa';
  if (/^3[47]/.test(cardNumber)) return 'amex';
  const six = Number(cardNumber.slice(0, 6));
  const isMastercard = (six >= 510_000 && six < 560_000) || (six >= 222_100 && six < 272_100);
  return isMastercard ? 'mastercard' : null;
}

/** Accepts `YYYY-MM-DD` from 1900 on. */
export function isBirthDate(text: string): boolean {
  return isDay(text) && Number(text.slice(0, 4)) >= BIRTH_YEAR_MIN;
}

/** A malformed field counts as present. */
export function recipientFaults(input: RecipientInput): RecipientFault[] {
  return input.type === 'card' ? cardFaults(input) : bankFaults(input);
}

function cardFaults(input: RecipientInput): RecipientFault[] {
  const { card_number: number, scheme } = input;
  const faults = [...findForeignFields(input, BANK_ONLY), ...findMissingFields(input, CARD_NEEDS)];
  if (!isPresent(number) || !isCardNumber(number)) return faults;
  if (isPresent(scheme) && scheme !== detectScheme(number)) {
    faults.push({ field: 'scheme', message: 'is not the network of card_number' });
  }
  return [...faults, ...last4Faults(input, number)];
}

function bankFaults(input: RecipientInput): RecipientFault[] {
  const { iban, sort_code, account_number } = input;
  const faults = findForeignFields(input, CARD_ONLY);
  const isUk = isPresent(sort_code) || isPresent(account_number);
  if (!isPresent(iban)) {
    const requiredFields = isUk ? UK_NEEDS : (['iban', ...UK_NEEDS] as const);
    return [
      ...faults,
      ...findMissingFields(input, requiredFields),
      ...last4Faults(input, account_number),
    ];
  }
  if (isUk) faults.push(...findMissingFields(input, UK_NEEDS));
  if (!isIban(iban)) return faults;
  if (!isInSepa(normalizeIban(iban))) faults.push(...findMissingFields(input, ['bic']));
  return [...faults, ...last4Faults(input, normalizeIban(iban))];
}

type Fields = readonly (keyof RecipientInput)[];

function findForeignFields(input: RecipientInput, fields: Fields): RecipientFault[] {
  const message = `does not belong to ${input.type === 'card' ? 'a card' : 'a bank account'}`;
  return fields.filter((field) => isPresent(input[field])).map((field) => ({ field, message }));
}

function findMissingFields(input: RecipientInput, fields: Fields): RecipientFault[] {
  const message = 'is required';
  return fields.filter((field) => !isPresent(input[field])).map((field) => ({ field, message }));
}

function last4Faults(
  { last4 }: RecipientInput,
  number: string | null | undefined,
): RecipientFault[] {
  if (!isPresent(last4) || !isPresent(number) || number === '' || number.endsWith(last4)) return [];
  return [{ field: 'last4', message: 'is not how the number ends' }];
}

function isPresent<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

/** Lists faults that depend on the time, in UTC. @see docs/api.md#recipients */
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

/** Omits `last4` and `scheme`, which repeat the number. */
export function recipientDetails(input: RecipientInput): RecipientDetails {
  const { type, first_name, last_name } = input;
  return {
    type,
    first_name,
    last_name,
    card_number: input.card_number ?? null,
    expiry_month: input.expiry_month ?? null,
    expiry_year: input.expiry_year ?? null,
    date_of_birth: input.date_of_birth ?? null,
    iban: isPresent(input.iban) ? normalizeIban(input.iban) : null,
    bic: input.bic?.toUpperCase() ?? null,
    sort_code: input.sort_code ?? null,
    account_number: input.account_number ?? null,
    address_line1: input.address_line1 ?? null,
    city: input.city ?? null,
    postal_code: input.postal_code ?? null,
    country: input.country ?? null,
    email: input.email ?? null,
    reference: input.reference ?? null,
    parent_payment_reference: input.parent_payment_reference ?? null,
  };
}

export function recipientFacts(details: RecipientDetails): RecipientFacts {
  const { type, card_number, iban } = details;
  const sepa_faults = iban === null ? [] : findSepaFaults(details);
  return {
    type,
    scheme: card_number === null ? null : detectScheme(card_number),
    has: RAIL_FIELDS.filter((field) => details[field] !== null),
    card_expires: cardExpires(details),
    iban_in_sepa: iban === null ? null : isInSepa(iban),
    ...(sepa_faults.length === 0 ? {} : { sepa_faults }),
  };
}

/** @see docs/api.md#recipients */
export function getLast4({ card_number, iban, account_number }: RecipientDetails): string {
  return (card_number ?? iban ?? account_number ?? '').slice(-4);
}

function cardExpires({ expiry_month, expiry_year }: RecipientDetails): string | null {
  return expiry_month === null || expiry_year === null ? null : `${expiry_year}-${expiry_month}`;
}

function isInSepa(iban: string): boolean {
  const country = iban.slice(0, 2);
  return isSEPACountry(country) || SEPA_SINCE_2024.has(country);
}
