import { COUNTRIES } from '../countries';
import { CURRENCIES } from '../money/money';

/** @see docs/api.md#methods */
type RefundKind = 'standard' | 'none' | 'payout_only';

type RequiredField = 'country' | 'customer.email';

interface PublicRules {
  display_name: string;
  currencies: readonly string[];
  countries: readonly string[];
  /** `withinDays` starts at `settled_at`; 0: no refunds. */
  refunds: Readonly<{ kind: RefundKind; withinDays: number }>;
  supports_recurring: boolean;
  requires_redirect: boolean;
  /** Settlement takes hours or days after authorization. */
  async_settlement: boolean;
  required_fields: readonly RequiredField[];
  chargebacks: boolean;
  notes: string | null;
}

export interface PaymentMethodRules extends PublicRules {
  page: 'bank_selector' | 'wallet' | 'card' | 'cash_reference' | 'voucher';
  /** Time from creation to `expired`. */
  expires_in_seconds: number;
  /** Time from `authorized` until attention is needed. */
  settlement_due_seconds: number;
  /** Time from acceptance of a refund until attention is needed. */
  refund_due_seconds: number;
}

const DAY_S = 86_400;
const HALF_HOUR_S = 1_800;

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

/** Every country and currency. @see docs/decisions.md#catalog */
const CARD = {
  ...USUAL,
  currencies: CURRENCIES,
  countries: COUNTRIES,
  refunds: { kind: 'standard', withinDays: 180 },
  supports_recurring: true,
  chargebacks: true,
  page: 'card',
  // An authorization expires after about a week without a capture.
  settlement_due_seconds: 5 * DAY_S,
  refund_due_seconds: 5 * DAY_S,
} as const;

/**
 * `page` and the `_seconds` fields are never published.
 * @see docs/api.md#methods, docs/api.md#refunds
 */
const PAYMENT_METHODS = {
  ideal: {
    ...USUAL,
    display_name: 'iDEAL',
    currencies: ['EUR'],
    countries: ['NL'],
    // 365 days here and in the refund rules: docs/decisions.md#catalog
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
    notes: 'After 90 days the customer requests a refund from Przelewy24 directly.',
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

export const PAYMENT_METHOD_IDS: readonly PaymentMethodId[] = Object.freeze(
  Object.keys(PAYMENT_METHODS).filter(isPaymentMethodId),
);

export function isPaymentMethodId(id: string): id is PaymentMethodId {
  return Object.hasOwn(PAYMENT_METHODS, id);
}

export function methodRules(id: PaymentMethodId): PaymentMethodRules {
  return PAYMENT_METHODS[id];
}

/** Settlement takes minutes after authorization; a card is captured later. */
export function settlesSoon(id: PaymentMethodId): boolean {
  const { async_settlement, page } = methodRules(id);
  return !async_settlement && page !== 'card';
}

export function catalogEntry(id: PaymentMethodId) {
  const { page, expires_in_seconds, settlement_due_seconds, refund_due_seconds, ...wire } =
    methodRules(id);
  return { method: id, ...wire };
}

export function availableEntry(id: PaymentMethodId) {
  const { display_name, currencies } = methodRules(id);
  return { method: id, display_name, currencies };
}

function words(text: string): readonly string[] {
  return Object.freeze(text.split(' '));
}
