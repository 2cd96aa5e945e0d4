import type { PaymentCallbackName } from './callback';
import type { EventType } from './event';
import type { Failure } from './lifecycle';

/** States of a payment. @see docs/api.md#states */
export const PAYMENT_STATUSES = [
  /** The bank session is still being opened. */
  'created',
  /** The redirect is issued; the customer has not paid. */
  'awaiting_customer',
  /** The customer paid; the money has not moved yet. Never expires. */
  'authorized',
  /** The money moved. Final. */
  'settled',
  /** The payment was declined or an error ended it. Final. */
  'failed',
  /** The merchant called it off or the customer abandoned it. Final. */
  'cancelled',
  /** The customer never paid. Final. */
  'expired',
] as const;

export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** Lawful moves; a move that is not listed does not happen. @see docs/api.md#states */
export const PAYMENT_MOVES = {
  created: ['awaiting_customer', 'failed', 'cancelled', 'expired'],
  awaiting_customer: ['authorized', 'failed', 'cancelled', 'expired'],
  authorized: ['settled', 'failed'],
  settled: [],
  failed: [],
  cancelled: [],
  expired: [],
} as const satisfies Record<PaymentStatus, readonly PaymentStatus[]>;

/** Event of each move; `created` emits none. @see docs/webhooks.md#events */
export const PAYMENT_EVENTS = {
  created: undefined,
  awaiting_customer: 'payment.awaiting_customer',
  authorized: 'payment.authorized',
  settled: 'payment.settled',
  failed: 'payment.failed',
  cancelled: 'payment.cancelled',
  expired: 'payment.expired',
} as const satisfies Record<PaymentStatus, EventType | undefined>;

export function isFinal(status: PaymentStatus): boolean {
  return PAYMENT_MOVES[status].length === 0;
}

/** States in which its workflow runs. */
export const PAYMENT_IN_FLIGHT = PAYMENT_STATUSES.filter((status) => !isFinal(status));

/**
 * Whether the merchant or the customer may still call a payment off.
 * @see docs/api.md#create-a-payment
 */
export function isCancellable(status: PaymentStatus): boolean {
  return status === 'created' || status === 'awaiting_customer';
}

/** The acts that an operator may ask of a payment. */
export const PAYMENT_ACTS = [
  'mark_settled',
  'mark_failed',
  'snooze',
  'claw_back',
  'mark_reversed',
] as const;
export type PaymentAct = (typeof PAYMENT_ACTS)[number];

/** Reasons why a payment needs a person: the values of `ServiceAttention`. */
export type PaymentAttention =
  | 'settlement_overdue'
  /** It has ended here, and the bank could not be asked to stop taking the money. */
  | 'session_not_closed'
  | 'late_money_pending'
  | 'late_authorization_voided'
  | 'late_settlement_reversed'
  | 'late_settlement_not_reversed'
  | 'failed_after_settled'
  | 'clawed_back'
  /** The bank speaks of other money than was asked for. */
  | 'amount_differs'
  | 'expired_after_authorized'
  | 'malformed_callback'
  | 'sender_not_known';

/** Effect of a callback on a payment in a given state. */
export type PaymentDecision =
  | { kind: 'move'; to: readonly PaymentStatus[] }
  /** Releases the money at the bank, since the customer authorised too late. */
  | { kind: 'void' }
  /** Sends the money back at the bank, since it moved too late. */
  | { kind: 'reverse' }
  /** The bank has sent late money back, or could not. */
  | { kind: 'reversed' }
  | { kind: 'not_reversed' }
  /** The bank takes settled money back: the payment is disputed, and a person books it. */
  | { kind: 'dispute'; reason: string; attention: PaymentAttention }
  | { kind: 'unapplied'; reason: string; attention?: PaymentAttention };

const move = (...to: PaymentStatus[]): PaymentDecision => ({ kind: 'move', to });
const unapplied = (reason: string, attention?: PaymentAttention): PaymentDecision => ({
  kind: 'unapplied',
  reason,
  ...(attention === undefined ? {} : { attention }),
});
const late = {
  authorized: { kind: 'void' },
  settled: { kind: 'reverse' },
  failed: unapplied('the payment has ended already'),
  expired: unapplied('the payment has ended already'),
  reversed: { kind: 'reversed' },
  reversal_failed: { kind: 'not_reversed' },
  clawed_back: unapplied('the payment never settled', 'clawed_back'),
} as const satisfies Record<PaymentCallbackName, PaymentDecision>;

const notSent = unapplied('no money of this payment was sent back');
/** Reports about money that has not moved yet. */
const unsettled = {
  reversed: notSent,
  reversal_failed: notSent,
  clawed_back: unapplied('the payment has not settled', 'clawed_back'),
} as const;

/**
 * Decisions for every status × every callback; a final state is never left.
 * @see docs/decisions.md#payments
 */
const DECISIONS: Record<PaymentStatus, Record<PaymentCallbackName, PaymentDecision>> = {
  created: {
    authorized: move('awaiting_customer', 'authorized'),
    settled: move('awaiting_customer', 'authorized', 'settled'),
    failed: move('failed'),
    expired: move('expired'),
    ...unsettled,
  },
  awaiting_customer: {
    authorized: move('authorized'),
    settled: move('authorized', 'settled'),
    failed: move('failed'),
    expired: move('expired'),
    ...unsettled,
  },
  authorized: {
    authorized: unapplied('the payment is authorised already'),
    settled: move('settled'),
    failed: move('failed'),
    expired: unapplied('an authorised payment never expires', 'expired_after_authorized'),
    ...unsettled,
  },
  settled: {
    authorized: unapplied('the payment is settled already'),
    settled: unapplied('the payment is settled already'),
    failed: {
      kind: 'dispute',
      reason: 'a settled payment never fails',
      attention: 'failed_after_settled',
    },
    expired: unapplied('a settled payment never expires'),
    reversed: notSent,
    reversal_failed: notSent,
    clawed_back: {
      kind: 'dispute',
      reason: 'an operator books what the bank takes back',
      attention: 'clawed_back',
    },
  },
  failed: late,
  cancelled: late,
  expired: late,
};

/** Decides the effect of `callback` on a payment in `status`; pure. */
export function decidePayment(
  status: PaymentStatus,
  callback: PaymentCallbackName,
): PaymentDecision {
  return DECISIONS[status][callback];
}

/** States passed through on the way to the one that the bank, or an operator, reports. */
export function wayTo(from: PaymentStatus, to: 'authorized' | 'settled'): readonly PaymentStatus[] {
  const decision = DECISIONS[from][to];
  return decision.kind === 'move' ? decision.to : [];
}

/** The code tells who cancelled. @see docs/decisions.md#payments */
export const CANCELLATIONS = {
  merchant: { code: 'cancelled_by_merchant', message: 'The merchant cancelled the payment.' },
  customer: { code: 'cancelled_by_customer', message: 'The customer abandoned the payment.' },
} as const satisfies Record<string, Failure>;

export type CancelledBy = keyof typeof CANCELLATIONS;

/** Failures of payments for which the bank gave no reason of its own. */
export const PAYMENT_FAILURES = {
  bank: { code: 'declined', message: 'The bank declined the payment.' },
  operator: { code: 'failed_at_bank', message: 'The bank reported that the payment failed.' },
} as const satisfies Record<string, Failure>;

/** Id of the workflow that runs a payment's lifecycle. */
export function paymentWorkflowId(paymentId: string): string {
  return `payment:${paymentId}`;
}
