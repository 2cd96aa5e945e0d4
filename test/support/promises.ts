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
  promiseRail('card_payout', 'Card payout', 'card', 'instant', false),
  promiseRail('sepa_credit_transfer', 'SEPA Credit Transfer', 'bank_account', 'next business day'),
  promiseRail('sepa_instant', 'SEPA Instant', 'bank_account', 'seconds'),
  promiseRail('faster_payments', 'Faster Payments', 'bank_account', 'seconds to two hours'),
];

function promiseRail(
  method: string,
  display_name: string,
  recipient_type: string,
  typical_speed: string,
  can_be_returned = true,
) {
  return { method, display_name, recipient_type, typical_speed, can_be_returned };
}
