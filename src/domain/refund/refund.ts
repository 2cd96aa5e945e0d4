import type { RefundCallbackName } from '../banks/callback';
import type { RuleViolation } from '../errors';
import type { EventType } from '../events/event';
import type { Failure } from '../failure';
import {
  type CommonAttention,
  type Decision,
  type Refused,
  type Resume,
  type State,
  transition,
  unapplied,
} from '../lifecycle';
import { formatMoney } from '../money/money';
import { isPaymentMethodId, methodRules } from '../payment/catalog';
import type { PaymentStatus } from '../payment/payment';
import type { WorkflowInput } from '../workflow-input';

/** @see docs/api.md#refunds */
export const REFUND_STATUSES = [
  /** Accepted and debited; the bank is processing it. */
  'processing',
  /** The money reached the customer. Final. */
  'settled',
  /** The bank refused it; the merchant has the money. Final. */
  'failed',
] as const;

export type RefundStatus = (typeof REFUND_STATUSES)[number];

export const REFUND_TRANSITIONS = {
  processing: ['settled', 'failed'],
  settled: [],
  failed: [],
} as const satisfies Record<RefundStatus, readonly RefundStatus[]>;

/** @see docs/webhooks.md#events */
export const REFUND_EVENTS = {
  processing: undefined,
  settled: 'refund.settled',
  failed: 'refund.failed',
} as const satisfies Record<RefundStatus, EventType | undefined>;

export function isFinalRefund(status: RefundStatus): boolean {
  return REFUND_TRANSITIONS[status].length === 0;
}

export const REFUND_IN_FLIGHT = REFUND_STATUSES.filter((status) => !isFinalRefund(status));

export const REFUND_ACTS = [
  'mark_settled',
  'mark_failed',
  'resolve_movement',
  'snooze',
  'acknowledge',
] as const;
export type RefundAct = (typeof REFUND_ACTS)[number];

/** Values of `ServiceAttention`. */
export type RefundAttention =
  | 'refund_overdue'
  | 'failed_after_settled'
  | 'settled_after_failed'
  | 'moved_after_failed'
  | 'second_completion'
  | 'amount_differs'
  | CommonAttention;

type RefundDecision = Decision<RefundStatus, RefundAttention>;

const DECISIONS: Record<RefundStatus, Record<RefundCallbackName, RefundDecision>> = {
  processing: { settled: transition('settled'), failed: transition('failed') },
  settled: {
    settled: unapplied('the refund is settled already'),
    failed: unapplied('a settled refund never fails', 'failed_after_settled'),
  },
  failed: {
    settled: unapplied(
      'a failed refund never settles; its amount was given back',
      'settled_after_failed',
    ),
    failed: unapplied('the refund has failed already'),
  },
};

export function decideRefund(status: RefundStatus, callback: RefundCallbackName): RefundDecision {
  return DECISIONS[status][callback];
}

export function refundWorkflowId(refundId: string): string {
  return `refund:${refundId}`;
}

export const REFUND_FAILURES = {
  bank: { code: 'refund_refused', message: 'The bank refused the refund.' },
  operator: { code: 'failed_at_bank', message: 'The bank reported that the refund failed.' },
} as const satisfies Record<string, Failure>;

export interface RefundablePayment {
  status: PaymentStatus;
  method: string;
  currency: string;
  /** Minor units. */
  amount: number;
  /** Minor units of processing and settled refunds. */
  refunded: number;
  settled_at: string | null;
  /** Minor units, where they differ from `amount`. */
  settled_amount?: number | null;
  /** A bank's report of a chargeback waits for an operator. */
  disputed_at?: string | null;
  /** Minor units that disputes took. */
  disputed?: number;
  /** Number of disputes that are not closed. */
  disputes_open?: number;
}

const DAY_MS = 86_400_000;

/** Minor units of all refunds that a payment can have. */
export function refundableAmount({
  amount,
  settled_amount,
  disputed = 0,
}: Pick<RefundablePayment, 'amount' | 'settled_amount' | 'disputed'>): number {
  return Math.min(amount, settled_amount ?? amount) - disputed;
}

/**
 * The window includes its last millisecond; its days are in src/domain/payment/catalog.ts.
 * @see docs/api.md#refunds
 * @param amount minor units; null for the rest
 */
export function refundFault(
  payment: RefundablePayment,
  amount: number | null,
  at: Date,
): RuleViolation | undefined {
  const { method, status, settled_at, currency } = payment;
  const rules = isPaymentMethodId(method) ? methodRules(method) : undefined;
  if (rules?.refunds.kind !== 'standard') {
    const name = rules?.display_name ?? method;
    const instead = rules?.refunds.kind === 'payout_only' ? ' Send the money as a payout.' : '';
    return { code: 'refund_not_supported', message: `${name} has no refunds.${instead}` };
  }
  if (status !== 'settled' || settled_at === null) {
    const message = `The payment is ${status}; only a settled payment can be refunded.`;
    const paid = status === 'authorized' || status === 'settled';
    const open = status === 'created' || status === 'awaiting_customer';
    const advice = open ? ' Cancel it instead.' : paid ? ' Wait until it settles.' : '';
    return { code: 'payment_not_settled', message: message + advice };
  }
  const remaining = refundableAmount(payment) - payment.refunded;
  const { disputed = 0, disputes_open = 0 } = payment;
  const isLost = remaining <= 0 && disputed > 0;
  if (payment.disputed_at || disputes_open > 0 || isLost) {
    const message = 'The payment is disputed, so there is nothing left to refund.';
    return { code: 'payment_disputed', message };
  }
  const days = rules.refunds.withinDays;
  if (at.getTime() > Date.parse(settled_at) + days * DAY_MS) {
    const message = `${rules.display_name} can be refunded for ${days} days after settlement.`;
    return { code: 'refund_window_expired', message };
  }
  if (remaining === 0 || (amount ?? 0) > remaining) {
    const message = `${formatMoney(remaining, currency)} of the payment can still be refunded.`;
    return { code: 'refund_amount_exceeds_balance', message };
  }
  return undefined;
}

export interface RefundInput extends WorkflowInput {
  refund_id: string;
  payment_id: string;
  /** Minor units; null: the rest at the reservation. */
  amount: number | null;
  /** ISO 8601; decides whether the refund window is open. */
  accepted_at: string;
  /** Time from acceptance until attention is needed. */
  due_seconds: number;
}

type RefundResume = Resume<'refund_id'>;
export type RefundStart = RefundInput | RefundResume;
export type RefundState = State<'refund_id', RefundStatus>;
export type RefundResult = RefundState | Refused<'refund_id'>;
