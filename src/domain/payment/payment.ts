import type { PaymentCallbackName } from '../banks/callback';
import type { DisputeCallbackName } from '../dispute/report';
import type { EventType } from '../events/event';
import type { Failure } from '../failure';
import {
  type CommonAttention,
  type Decision,
  type Resume,
  type State,
  transition,
  unapplied,
} from '../lifecycle';
import type { WorkflowInput } from '../workflow-input';

/** @see docs/api.md#states */
export const PAYMENT_STATUSES = [
  /** The bank session is still being opened. */
  'created',
  /** The redirect is issued; the customer has not paid. */
  'awaiting_customer',
  /** The customer approved it; the money has not moved yet. Never expires. */
  'authorized',
  /** The money moved. Final. */
  'settled',
  /** Declined, or ended with an error. Final. */
  'failed',
  /** Cancelled by the merchant, or abandoned by the customer. Final. */
  'cancelled',
  /** The customer never paid. Final. */
  'expired',
] as const;

export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

export const PAYMENT_TRANSITIONS = {
  created: ['awaiting_customer', 'failed', 'cancelled', 'expired'],
  awaiting_customer: ['authorized', 'failed', 'cancelled', 'expired'],
  authorized: ['settled', 'failed'],
  settled: [],
  failed: [],
  cancelled: [],
  expired: [],
} as const satisfies Record<PaymentStatus, readonly PaymentStatus[]>;

/** @see docs/webhooks.md#events */
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
  return PAYMENT_TRANSITIONS[status].length === 0;
}

export const PAYMENT_IN_FLIGHT = PAYMENT_STATUSES.filter((status) => !isFinal(status));

/** @see docs/api.md#create-a-payment */
export function isCancellable(status: PaymentStatus): boolean {
  return status === 'created' || status === 'awaiting_customer';
}

export const PAYMENT_ACTS = [
  'mark_settled',
  'mark_failed',
  'snooze',
  'acknowledge',
  'claw_back',
  'dispute_won',
  'mark_reversed',
  'resolve_movement',
  'give_up_closing',
] as const;
export type PaymentAct = (typeof PAYMENT_ACTS)[number];

/** Values of `ServiceAttention`. */
export type PaymentAttention =
  | 'settlement_overdue'
  | 'session_not_closed'
  | 'late_money_pending'
  | 'late_authorization_voided'
  | 'late_settlement_reversed'
  | 'late_settlement_not_reversed'
  /** No confirmation in time that late funds are back. */
  | 'late_reversal_overdue'
  | 'failed_after_settled'
  | 'clawed_back'
  | 'dispute_differs'
  | 'amount_differs'
  | 'second_settlement'
  | 'expired_after_authorized'
  | typeof METHOD_DIFFERS
  | CommonAttention;

/** Code of a bank's `settled`: the customer paid by another method or brand. */
export const METHOD_DIFFERS = 'method_differs';

export type PaymentDecision =
  | Decision<PaymentStatus, PaymentAttention>
  /** Releases the money: the customer authorized too late. */
  | { kind: 'void' }
  /** Sends the money back: it settled too late. */
  | { kind: 'reverse' }
  /** May be a repeat. */
  | { kind: 'settled_again' }
  /** The bank has sent money in suspense back, or could not. */
  | { kind: 'reversed' }
  | { kind: 'not_reversed' }
  /** Chargeback, whose entry an operator posts. */
  | { kind: 'dispute'; reason: string; attention: PaymentAttention }
  | { kind: 'dispute_report'; name: DisputeCallbackName };

const notDisputable = unapplied('only a settled payment can be disputed', 'dispute_differs');
const undisputable = {
  dispute_opened: notDisputable,
  dispute_updated: notDisputable,
  dispute_withdrawn: notDisputable,
  dispute_reinstated: notDisputable,
  dispute_won: notDisputable,
  dispute_lost: notDisputable,
} as const;

const lateDecisions = {
  authorized: { kind: 'void' },
  settled: { kind: 'reverse' },
  failed: unapplied('the payment has ended already'),
  expired: unapplied('the payment has ended already'),
  reversed: { kind: 'reversed' },
  reversal_failed: { kind: 'not_reversed' },
  clawed_back: unapplied('the payment never settled', 'clawed_back'),
  ...undisputable,
} as const satisfies Record<PaymentCallbackName, PaymentDecision>;

const notSent = unapplied('no money of this payment was sent back');
const unsettledDecisions = {
  reversed: notSent,
  reversal_failed: notSent,
  clawed_back: unapplied('the payment has not settled', 'clawed_back'),
  ...undisputable,
} as const;

/** A final state is never left. @see docs/decisions.md#payments */
const DECISIONS: Record<PaymentStatus, Record<PaymentCallbackName, PaymentDecision>> = {
  created: {
    authorized: transition('awaiting_customer', 'authorized'),
    settled: transition('awaiting_customer', 'authorized', 'settled'),
    failed: transition('failed'),
    expired: transition('expired'),
    ...unsettledDecisions,
  },
  awaiting_customer: {
    authorized: transition('authorized'),
    settled: transition('authorized', 'settled'),
    failed: transition('failed'),
    expired: transition('expired'),
    ...unsettledDecisions,
  },
  authorized: {
    authorized: unapplied('the payment is authorized already'),
    settled: transition('settled'),
    failed: transition('failed'),
    expired: unapplied('an authorized payment never expires', 'expired_after_authorized'),
    ...unsettledDecisions,
  },
  settled: {
    authorized: unapplied('the payment is settled already'),
    settled: { kind: 'settled_again' },
    failed: {
      kind: 'dispute',
      reason: 'a settled payment never fails',
      attention: 'failed_after_settled',
    },
    expired: unapplied('a settled payment never expires'),
    /** Means its own money, unless some is in suspense: as `clawed_back`. */
    reversed: { kind: 'reversed' },
    reversal_failed: notSent,
    clawed_back: {
      kind: 'dispute',
      reason: 'an operator posts the chargeback',
      attention: 'clawed_back',
    },
    dispute_opened: { kind: 'dispute_report', name: 'dispute_opened' },
    dispute_updated: { kind: 'dispute_report', name: 'dispute_updated' },
    dispute_withdrawn: { kind: 'dispute_report', name: 'dispute_withdrawn' },
    dispute_reinstated: { kind: 'dispute_report', name: 'dispute_reinstated' },
    dispute_won: { kind: 'dispute_report', name: 'dispute_won' },
    dispute_lost: { kind: 'dispute_report', name: 'dispute_lost' },
  },
  failed: lateDecisions,
  cancelled: lateDecisions,
  expired: lateDecisions,
};

/** Money in suspense: only an operator or the bank ends it. */
const SUSPENSE_DECISIONS: Partial<Record<PaymentCallbackName, PaymentDecision>> = {
  expired: unapplied('money of the payment is in suspense'),
  reversed: { kind: 'reversed' },
  reversal_failed: { kind: 'not_reversed' },
};

/** @param isHeld whether money is in suspense */
export function decidePayment(
  status: PaymentStatus,
  callback: PaymentCallbackName,
  isHeld = false,
): PaymentDecision {
  return (isHeld ? SUSPENSE_DECISIONS[callback] : undefined) ?? DECISIONS[status][callback];
}

export function pathTo(
  from: PaymentStatus,
  to: 'authorized' | 'settled',
): readonly PaymentStatus[] {
  const decision = DECISIONS[from][to];
  return decision.kind === 'move' ? decision.to : [];
}

/** @see docs/decisions.md#payments */
export const CANCELLATIONS = {
  merchant: { code: 'cancelled_by_merchant', message: 'The merchant cancelled the payment.' },
  customer: { code: 'cancelled_by_customer', message: 'The customer abandoned the payment.' },
} as const satisfies Record<string, Failure>;

export type CancelledBy = keyof typeof CANCELLATIONS;

export const PAYMENT_FAILURES = {
  bank: { code: 'declined', message: 'The bank declined the payment.' },
  operator: { code: 'failed_at_bank', message: 'The bank reported that the payment failed.' },
} as const satisfies Record<string, Failure>;

export function paymentWorkflowId(paymentId: string): string {
  return `payment:${paymentId}`;
}

export interface PaymentInput extends WorkflowInput {
  payment_id: string;
  /** Minor units. */
  amount: number;
  country: string | null;
  /** The bank returns the customer to it. */
  return_url: string;
  expires_in_seconds: number;
  /** Time from authorization until attention is needed. */
  settlement_due_seconds: number;
  /** Minutes after authorization. */
  settles_soon?: true;
}

export type PaymentResume = Resume<'payment_id'>;

export type PaymentStart = PaymentInput | PaymentResume;

export type PaymentState = State<'payment_id', PaymentStatus>;

/** First written state, for the response to the creating request. */
export interface PaymentOpening {
  status: PaymentStatus;
  failure: Failure | null;
  /** ISO 8601, ms. */
  created_at: string;
}

export interface PaymentOpened extends PaymentState {
  /** Absent if it is not stored, and in a later run. */
  opening?: PaymentOpening;
}

export interface CancelInput {
  by: CancelledBy;
}
