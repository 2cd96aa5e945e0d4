import type { RefundCallbackName } from '../callback/callback';
import type { Failure } from '../lifecycle';
import type { EventType } from '../webhook/event';

/** States of a refund. @see docs/api.md#refunds */
export const REFUND_STATUSES = [
  /** Accepted and debited; the bank is processing it. */
  'processing',
  /** The money reached the customer. Final. */
  'settled',
  /** The bank refused it; the money stays with the merchant. Final. */
  'failed',
] as const;

export type RefundStatus = (typeof REFUND_STATUSES)[number];

/** Allowed transitions. @see docs/api.md#refunds */
export const REFUND_TRANSITIONS = {
  processing: ['settled', 'failed'],
  settled: [],
  failed: [],
} as const satisfies Record<RefundStatus, readonly RefundStatus[]>;

/** Event of each state; `processing` emits none. @see docs/webhooks.md#events */
export const REFUND_EVENTS = {
  processing: undefined,
  settled: 'refund.settled',
  failed: 'refund.failed',
} as const satisfies Record<RefundStatus, EventType | undefined>;

export function isFinalRefund(status: RefundStatus): boolean {
  return REFUND_TRANSITIONS[status].length === 0;
}

/** States in which the workflow runs. */
export const REFUND_IN_FLIGHT = REFUND_STATUSES.filter((status) => !isFinalRefund(status));

export const REFUND_ACTS = ['mark_settled', 'mark_failed', 'snooze'] as const;
export type RefundAct = (typeof REFUND_ACTS)[number];

/** Why a refund needs an operator: the values of `ServiceAttention`. */
export type RefundAttention =
  | 'refund_overdue'
  | 'failed_after_settled'
  | 'settled_after_failed'
  /** The bank reports a different amount or currency. */
  | 'amount_differs'
  | 'malformed_callback'
  | 'sender_not_known';

/** Effect of a callback on a refund in a given state. */
export type RefundDecision =
  | { kind: 'move'; to: readonly RefundStatus[] }
  | { kind: 'unapplied'; reason: string; attention?: RefundAttention };

/** Decisions for every status × every callback; a final state is never left. */
const DECISIONS: Record<RefundStatus, Record<RefundCallbackName, RefundDecision>> = {
  processing: {
    settled: { kind: 'move', to: ['settled'] },
    failed: { kind: 'move', to: ['failed'] },
  },
  settled: {
    settled: { kind: 'unapplied', reason: 'the refund is settled already' },
    failed: {
      kind: 'unapplied',
      reason: 'a settled refund never fails',
      attention: 'failed_after_settled',
    },
  },
  failed: {
    settled: {
      kind: 'unapplied',
      reason: 'a failed refund never settles; its amount was given back',
      attention: 'settled_after_failed',
    },
    failed: { kind: 'unapplied', reason: 'the refund has failed already' },
  },
};

/** Decides the effect of `callback` on a refund in `status`; pure. */
export function decideRefund(status: RefundStatus, callback: RefundCallbackName): RefundDecision {
  return DECISIONS[status][callback];
}

export function refundWorkflowId(refundId: string): string {
  return `refund:${refundId}`;
}

/** Failures without a reason from the bank. */
export const REFUND_FAILURES = {
  bank: { code: 'refund_refused', message: 'The bank refused the refund.' },
  operator: { code: 'failed_at_bank', message: 'The bank reported that the refund failed.' },
} as const satisfies Record<string, Failure>;
