import type { RecipientField, RecipientType } from './rails';

/** Card networks that a payout can go to. @see docs/api.md#recipients */
export const CARD_SCHEMES = ['visa', 'mastercard', 'amex'] as const;
export type CardScheme = (typeof CARD_SCHEMES)[number];

/**
 * Facts about a recipient that may stand in clear: enough to check a rail, nothing to identify a
 * person.
 */
export interface RecipientFacts {
  type: RecipientType;
  /** Null for bank accounts, and for cards of other networks. */
  scheme: CardScheme | null;
  /** Fields that were given, of those that rails ask for. */
  has: RecipientField[];
  /** Last month in which a card is valid, `YYYY-MM`; null for bank accounts. */
  card_expires: string | null;
  /** Whether the IBAN's country is in the SEPA area; null without an IBAN. */
  iban_in_sepa: boolean | null;
}

/** Everything the merchant sent, sealed on arrival and opened only where it is sent to a bank. */
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
