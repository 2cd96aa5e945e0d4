import type { RefundCallbackName } from './callback';
import type { EventType } from './event';
import type { Failure } from './lifecycle';

/** States of a refund. @see docs/api.md#refunds */
export const REFUND_STATUSES = [
  /** Accepted and debited; the bank is working on it. */
  'processing',
  /** The money reached the customer. Final. */
  'settled',
  /** The bank refused it; the money stays with the merchant. Final. */
  'failed',
] as const;

export type RefundStatus = (typeof REFUND_STATUSES)[number];

/** Lawful moves; a move that is not listed does not happen. @see docs/api.md#refunds */
export const REFUND_MOVES = {
  processing: ['settled', 'failed'],
  settled: [],
  failed: [],
} as const satisfies Record<RefundStatus, readonly RefundStatus[]>;

/** Event of each move; `processing` emits none. @see docs/webhooks.md#events */
export const REFUND_EVENTS = {
  processing: undefined,
  settled: 'refund.settled',
  failed: 'refund.failed',
} as const satisfies Record<RefundStatus, EventType | undefined>;

export function isFinalRefund(status: RefundStatus): boolean {
  return REFUND_MOVES[status].length === 0;
}

/** States in which its workflow runs. */
export const REFUND_IN_FLIGHT = REFUND_STATUSES.filter((status) => !isFinalRefund(status));

/** The acts that an operator may ask of a refund. */
export const REFUND_ACTS = ['mark_settled', 'mark_failed', 'snooze'] as const;
export type RefundAct = (typeof REFUND_ACTS)[number];

/** Reasons why a refund needs a person: the values of `ServiceAttention`. */
export type RefundAttention =
  | 'refund_overdue'
  | 'failed_after_settled'
  | 'settled_after_failed'
  /** The bank speaks of other money than was asked for. */
  | 'amount_differs'
  | 'malformed_callback'
  | 'sender_not_known';

/** Effect of a callback on a refund in a given state. */
export type RefundDecision =
  | { kind: 'move'; to: 'settled' | 'failed' }
  | { kind: 'unapplied'; reason: string; attention?: RefundAttention };

/** Decisions for every status × every callback; a final state is never left. */
const DECISIONS: Record<RefundStatus, Record<RefundCallbackName, RefundDecision>> = {
  processing: {
    settled: { kind: 'move', to: 'settled' },
    failed: { kind: 'move', to: 'failed' },
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

/** Id of the workflow that runs a refund's lifecycle. */
export function refundWorkflowId(refundId: string): string {
  return `refund:${refundId}`;
}

/** Failures of refunds for which the bank gave no reason of its own. */
export const REFUND_FAILURES = {
  bank: { code: 'refund_refused', message: 'The bank refused the refund.' },
  operator: { code: 'failed_at_bank', message: 'The bank reported that the refund failed.' },
} as const satisfies Record<string, Failure>;
