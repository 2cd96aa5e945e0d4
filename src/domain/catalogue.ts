import { COUNTRIES } from './countries';
import { CURRENCIES } from './currencies';

/**
 * Ways of refunding a settled payment: `standard` in full and in part, `none` not at all,
 * `payout_only` by a payout and never by a refund.
 * @see docs/api.md#methods
 */
type RefundKind = 'standard' | 'none' | 'payout_only';

type RequiredField = 'country' | 'customer.email';

interface PublicRules {
  display_name: string;
  /** ISO 4217 codes. */
  currencies: readonly string[];
  /** ISO 3166-1 alpha-2 codes. */
  countries: readonly string[];
  /** `withinDays` runs from `settled_at`; 0 where there is no refund. */
  refunds: Readonly<{ kind: RefundKind; withinDays: number }>;
  supports_recurring: boolean;
  requires_redirect: boolean;
  /** Whether the money usually follows the authorisation by hours or days. */
  async_settlement: boolean;
  required_fields: readonly RequiredField[];
  chargebacks: boolean;
  notes: string | null;
}

/** Rules of a method, public and internal. */
export interface PaymentMethodRules extends PublicRules {
  /** Content of the hosted page. @see docs/api.md#send-the-customer-to-redirect_url */
  page: 'bank_selector' | 'wallet' | 'card' | 'cash_reference' | 'voucher';
  /** Time from creation to `expired`. */
  expires_in_seconds: number;
  /** Time from `authorized` until a missing settlement is shown to operators. */
  settlement_due_seconds: number;
  /** Time from the acceptance of a refund until a missing answer is shown to operators. */
  refund_due_seconds: number;
}

const DAY_S = 86_400;
const HALF_HOUR_S = 1_800;

/** Rules that most methods share. */
const USUAL = {
  supports_recurring: false,
  requires_redirect: true,
  async_settlement: false,
  required_fields: [],
  chargebacks: false,
  notes: null,
  expires_in_seconds: HALF_HOUR_S,
  settlement_due_seconds: DAY_S,
  refund_due_seconds: 3 * DAY_S,
} as const;

/**
 * Cards are accepted in every country and currency of the ISO tables.
 * @see docs/decisions.md#catalogue
 */
const CARD = {
  ...USUAL,
  currencies: CURRENCIES,
  countries: COUNTRIES,
  refunds: { kind: 'standard', withinDays: 180 },
  supports_recurring: true,
  chargebacks: true,
  page: 'card',
  // An authorisation is lost unless it is captured within about a week.
  settlement_due_seconds: 5 * DAY_S,
  refund_due_seconds: 5 * DAY_S,
} as const;

/**
 * Every payment method and its rules, read by the API's checks, the hosted page and the workflow's
 * timers. `page` and the three `_seconds` fields are never published.
 * @see docs/api.md#methods, docs/api.md#refunds
 */
const PAYMENT_METHODS = {
  ideal: {
    ...USUAL,
    display_name: 'iDEAL',
    currencies: ['EUR'],
    countries: ['NL'],
    // 365 days here and in the refund rules: docs/decisions.md#catalogue
    refunds: { kind: 'standard', withinDays: 365 },
    page: 'bank_selector',
  },
  bancontact: {
    ...USUAL,
    display_name: 'Bancontact',
    currencies: ['EUR'],
    countries: ['BE'],
    refunds: { kind: 'standard', withinDays: 365 },
    page: 'bank_selector',
  },
  mbway: {
    ...USUAL,
    display_name: 'MB WAY',
    currencies: ['EUR'],
    countries: ['PT'],
    refunds: { kind: 'standard', withinDays: 365 },
    notes: 'The customer approves the payment in the MB WAY app.',
    page: 'wallet',
  },
  przelewy24: {
    ...USUAL,
    display_name: 'Przelewy24',
    currencies: ['EUR', 'PLN'],
    countries: ['PL'],
    refunds: { kind: 'standard', withinDays: 90 },
    async_settlement: true,
    required_fields: ['country', 'customer.email'],
    notes: 'After 90 days the customer claims a refund from Przelewy24 itself.',
    page: 'bank_selector',
    settlement_due_seconds: 3 * DAY_S,
  },
  visa: { ...CARD, display_name: 'Visa' },
  mastercard: { ...CARD, display_name: 'Mastercard' },
  amex: { ...CARD, display_name: 'American Express' },
  multibanco: {
    ...USUAL,
    display_name: 'Multibanco',
    currencies: ['EUR'],
    countries: ['PT'],
    refunds: { kind: 'none', withinDays: 0 },
    async_settlement: true,
    required_fields: ['country', 'customer.email'],
    notes:
      'The customer pays a reference at a cash machine or in online banking, within 3 days. ' +
      'There is no refund mechanism.',
    page: 'cash_reference',
    expires_in_seconds: 3 * DAY_S,
    settlement_due_seconds: 4 * DAY_S,
  },
  paysafecard: {
    ...USUAL,
    display_name: 'paysafecard',
    currencies: words('AUD CAD CHF CZK DKK EUR GBP HUF MXN NOK NZD PLN RON SEK USD'),
    countries: words(
      'AT AU BE BG CA CH CY CZ DE DK ES FI FR GB GI GR HR HU IE IT LI LT LU LV MT MX NL NO NZ PL ' +
        'PT RO SE SI SK US',
    ),
    refunds: { kind: 'payout_only', withinDays: 0 },
    notes: 'A voucher is never refunded: send the money back as a payout.',
    page: 'voucher',
    settlement_due_seconds: 2 * DAY_S,
  },
} as const satisfies Record<string, PaymentMethodRules>;

export type PaymentMethodId = keyof typeof PAYMENT_METHODS;

/** Entry of GET /v1/payment-methods, as it is sent. @see docs/api.md#methods */
export type CatalogueEntry = { method: PaymentMethodId } & PublicRules;

/** Entry of GET /v1/payment-methods/available, as it is sent. @see docs/api.md#methods */
export type AvailableEntry = Pick<CatalogueEntry, 'method' | 'display_name' | 'currencies'>;

/** Every method, in the order of the catalogue. */
export const PAYMENT_METHOD_IDS: readonly PaymentMethodId[] = Object.freeze(
  Object.keys(PAYMENT_METHODS).filter(isPaymentMethodId),
);

/** Whether the catalogue has this method. */
export function isPaymentMethodId(id: string): id is PaymentMethodId {
  return Object.hasOwn(PAYMENT_METHODS, id);
}

/** Rules of a method under their general type, for comparison with a caller's input. */
export function methodRules(id: PaymentMethodId): PaymentMethodRules {
  return PAYMENT_METHODS[id];
}

/** Whether the money usually follows the authorisation within minutes; a card is captured later. */
export function settlesSoon(id: PaymentMethodId): boolean {
  const { async_settlement, page } = methodRules(id);
  return !async_settlement && page !== 'card';
}

/** Catalogue entry of a method, without its internal rules. @see docs/api.md#methods */
export function catalogueEntry(id: PaymentMethodId): CatalogueEntry {
  const { page, expires_in_seconds, settlement_due_seconds, refund_due_seconds, ...wire } =
    methodRules(id);
  return { method: id, ...wire };
}

/** Entry of a method in the list of those that an account can use now. @see docs/api.md#methods */
export function availableEntry(id: PaymentMethodId): AvailableEntry {
  const { display_name, currencies } = methodRules(id);
  return { method: id, display_name, currencies };
}

function words(text: string): readonly string[] {
  return Object.freeze(text.split(' '));
}
