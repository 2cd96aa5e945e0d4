import type { PaymentMethodId } from '../../src/domain/payment/catalog';

/** Refunds of each method as merchants are promised them, written out apart from the product. */
export const REFUNDS: Record<PaymentMethodId, { kind: string; withinDays: number }> = {
  ideal: { kind: 'standard', withinDays: 365 },
  bancontact: { kind: 'standard', withinDays: 365 },
  mbway: { kind: 'standard', withinDays: 365 },
  przelewy24: { kind: 'standard', withinDays: 90 },
  visa: { kind: 'standard', withinDays: 180 },
  mastercard: { kind: 'standard', withinDays: 180 },
  amex: { kind: 'standard', withinDays: 180 },
  multibanco: { kind: 'none', withinDays: 0 },
  paysafecard: { kind: 'payout_only', withinDays: 0 },
};

/** Rails as `GET /v1/payout-methods` promises them, in its order. */
export const RAIL_ENTRIES = [
  {
    method: 'card_payout',
    display_name: 'Card payout',
    recipient_type: 'card',
    typical_speed: 'instant',
    can_be_returned: false,
  },
  {
    method: 'sepa_credit_transfer',
    display_name: 'SEPA Credit Transfer',
    recipient_type: 'bank_account',
    typical_speed: 'next business day',
    can_be_returned: true,
  },
  {
    method: 'sepa_instant',
    display_name: 'SEPA Instant',
    recipient_type: 'bank_account',
    typical_speed: 'seconds',
    can_be_returned: true,
  },
  {
    method: 'faster_payments',
    display_name: 'Faster Payments',
    recipient_type: 'bank_account',
    typical_speed: 'seconds to two hours',
    can_be_returned: true,
  },
];
