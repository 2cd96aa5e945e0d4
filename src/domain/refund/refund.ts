import type { RefundCallbackName } from '../banks/callback';
import type { EventType } from '../events/event';
import type { Failure } from '../failure';
import { type CommonAttention, type Decision, transition, unapplied } from '../lifecycle';

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

export type RefundDecision = Decision<RefundStatus, RefundAttention>;

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
