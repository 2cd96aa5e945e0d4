/** Codes and names of Stripe, and what they are here. */

/** Types to which the webhook has to be subscribed, and that are read from the list of events. */
export const EVENT_TYPES: readonly string[] = [
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'checkout.session.async_payment_failed',
  'checkout.session.expired',
  'payment_intent.processing',
  'charge.succeeded',
  'charge.updated',
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
  'charge.dispute.funds_withdrawn',
  'charge.dispute.funds_reinstated',
  'refund.created',
  'refund.updated',
  'refund.failed',
];

/** Codes of failures that are passed on to merchants. None names the payer. */
export const FAILURES: Readonly<Record<string, string>> = {
  card_declined: 'The card was declined.',
  expired_card: 'The card has expired.',
  insufficient_funds: 'There is not enough money on the account.',
  payment_intent_payment_attempt_expired: 'The customer did not pay in time.',
  payment_intent_payment_attempt_failed: 'The payment failed.',
  payment_method_customer_decline: 'The customer declined the payment.',
  payment_method_provider_decline: 'The provider of the payment method declined the payment.',
  payment_method_provider_timeout: 'The provider of the payment method did not answer.',
};

export const REFUND_FAILURES: Readonly<Record<string, string>> = {
  lost_or_stolen_card: 'The card is lost or stolen.',
  expired_or_canceled_card: 'The card has expired, or was canceled.',
  charge_for_pending_refund_disputed: 'The payment is disputed.',
  insufficient_funds: 'The Stripe balance did not reach.',
  declined: 'The bank of the customer declined it.',
  merchant_request: 'It was canceled at Stripe.',
};

/** Refusals of an amount by narrower limits than those of the table of methods. */
export const DECLINES: Readonly<Record<string, string>> = {
  amount_too_small: 'Stripe takes no payment of this small an amount.',
  amount_too_large: 'Stripe takes no payment of this large an amount.',
};

/** Refusals that no repeat changes, in words for merchants. Others are tried again. */
export const REFUSALS: Readonly<Record<string, string>> = {
  charge_already_refunded: 'The payment is refunded already.',
  charge_disputed: 'The payment is disputed: the dispute decides.',
  refund_disputed_payment: 'The payment is disputed: the dispute decides.',
  charge_not_refundable: 'The payment cannot be refunded.',
  amount_too_large: 'More than what is left of the payment.',
};

/** Statuses of an open dispute, in their order; those of an inquiry are a warning. */
export const OPEN_DISPUTES: Readonly<Record<string, 'needs_response' | 'under_review'>> = {
  warning_needs_response: 'needs_response',
  warning_under_review: 'under_review',
  needs_response: 'needs_response',
  under_review: 'under_review',
};

export const CLOSED_DISPUTES: Readonly<Record<string, 'dispute_won' | 'dispute_lost'>> = {
  won: 'dispute_won',
  warning_closed: 'dispute_won',
  prevented: 'dispute_won',
  lost: 'dispute_lost',
};

/** Charges that are a transaction of their own. */
export const FEES: readonly string[] = ['stripe_fee', 'stripe_fx_fee', 'tax_fee'];

/** To and from a bank account of ours. */
export const TRANSFERS: readonly string[] = [
  ...['payout', 'payout_cancel', 'payout_failure', 'topup', 'topup_reversal'],
];
