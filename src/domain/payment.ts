import type { PaymentCallbackName } from './callback';
import type { EventType } from './event';

/** Where a payment stands. @see spec §3.1 */
export const PAYMENT_STATUSES = [
  /** The bank session is still being opened. */
  'created',
  /** The redirect is issued; the customer has not paid. */
  'awaiting_customer',
  /** The customer paid; the money has not moved yet. Never expires. */
  'authorized',
  /** The money moved. Final. */
  'settled',
  /** Declined or errored. Final. */
  'failed',
  /** Called off by the merchant or abandoned by the customer. Final. */
  'cancelled',
  /** The customer never paid. Final. */
  'expired',
] as const;

export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** The lawful moves. Whatever is not listed does not happen. @see spec §3.1 */
export const PAYMENT_MOVES = {
  created: ['awaiting_customer', 'failed', 'cancelled', 'expired'],
  awaiting_customer: ['authorized', 'failed', 'cancelled', 'expired'],
  authorized: ['settled', 'failed'],
  settled: [],
  failed: [],
  cancelled: [],
  expired: [],
} as const satisfies Record<PaymentStatus, readonly PaymentStatus[]>;

/** The event of each move; `created` emits none. @see spec §6 */
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

/** Whether merchant or customer may still call it off. @see spec §4.1 */
export function isCancellable(status: PaymentStatus): boolean {
  return status === 'created' || status === 'awaiting_customer';
}

/** The acts that an operator may ask of a payment. */
export const PAYMENT_ACTS = ['mark_settled', 'mark_failed', 'snooze'] as const;
export type PaymentAct = (typeof PAYMENT_ACTS)[number];

/** Why a payment needs a person: the values of `ServiceAttention`. */
export type PaymentAttention =
  | 'settlement_overdue'
  | 'late_money_pending'
  | 'late_authorization_voided'
  | 'late_settlement_reversed'
  | 'late_settlement_not_reversed'
  | 'failed_after_settled'
  | 'expired_after_authorized'
  | 'malformed_callback';

/** What a callback does to a payment in a given state. */
export type PaymentDecision =
  | { kind: 'move'; to: readonly PaymentStatus[] }
  /** The customer authorised too late: release it at the bank. */
  | { kind: 'void' }
  /** The money moved too late: send it back at the bank. */
  | { kind: 'reverse' }
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
} as const satisfies Record<PaymentCallbackName, PaymentDecision>;

/** Every status × every callback. A final state is never left. Decided: "Payments". */
const DECISIONS: Record<PaymentStatus, Record<PaymentCallbackName, PaymentDecision>> = {
  created: {
    authorized: move('awaiting_customer', 'authorized'),
    settled: move('awaiting_customer', 'authorized', 'settled'),
    failed: move('failed'),
    expired: move('expired'),
  },
  awaiting_customer: {
    authorized: move('authorized'),
    settled: move('authorized', 'settled'),
    failed: move('failed'),
    expired: move('expired'),
  },
  authorized: {
    authorized: unapplied('the payment is authorised already'),
    settled: move('settled'),
    failed: move('failed'),
    expired: unapplied('an authorised payment never expires', 'expired_after_authorized'),
  },
  settled: {
    authorized: unapplied('the payment is settled already'),
    settled: unapplied('the payment is settled already'),
    failed: unapplied('a settled payment never fails', 'failed_after_settled'),
    expired: unapplied('a settled payment never expires'),
  },
  failed: late,
  cancelled: late,
  expired: late,
};

/** Pure: what `callback` does to a payment in `status`. */
export function decidePayment(
  status: PaymentStatus,
  callback: PaymentCallbackName,
): PaymentDecision {
  return DECISIONS[status][callback];
}

/** The states passed through on the way to where the bank, or an operator, says it is. */
export function wayTo(from: PaymentStatus, to: 'authorized' | 'settled'): readonly PaymentStatus[] {
  const decision = DECISIONS[from][to];
  return decision.kind === 'move' ? decision.to : [];
}

/** Why a payment failed or was cancelled. @see spec §2.1 */
export interface Failure {
  code: string;
  message: string;
}

/** Decided: who cancelled is told by the code. */
export const CANCELLATIONS = {
  merchant: { code: 'cancelled_by_merchant', message: 'The merchant cancelled the payment.' },
  customer: { code: 'cancelled_by_customer', message: 'The customer abandoned the payment.' },
} as const satisfies Record<string, Failure>;

export type CancelledBy = keyof typeof CANCELLATIONS;

/** Why a payment failed when the bank gave no reason of its own. */
export const PAYMENT_FAILURES = {
  bank: { code: 'declined', message: 'The bank declined the payment.' },
  operator: { code: 'failed_at_bank', message: 'The bank reported that the payment failed.' },
} as const satisfies Record<string, Failure>;

/** The workflow that is the payment's life. */
export function paymentWorkflowId(paymentId: string): string {
  return `payment:${paymentId}`;
}
