import type { RecipientField, RecipientType } from './rails';
import type { SepaFault } from './sepa-text';

/** @see docs/api.md#recipients */
export const CARD_SCHEMES = ['visa', 'mastercard', 'amex'] as const;
export type CardScheme = (typeof CARD_SCHEMES)[number];

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
