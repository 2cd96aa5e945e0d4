import type { PayoutCallbackName } from './callback';
import type { EventType } from './event';
import type { Failure } from './lifecycle';

/** States of a payout. @see docs/api.md#states-of-a-payout */
export const PAYOUT_STATUSES = [
  /** Accepted with its money reserved; the bank has not taken it yet. */
  'created',
  /** Queued at the bank. */
  'submitted',
  /** Handed to the scheme; amount and fee are captured. */
  'sent',
  /** The money reached the recipient; it may still come back. */
  'completed',
  /** The money never left, so amount and fee are given back. Final. */
  'failed',
  /** The money left and came back; the amount is credited, the fee stays. Final. */
  'returned',
] as const;

export type PayoutStatus = (typeof PAYOUT_STATUSES)[number];

/** Lawful moves; a move that is not listed does not happen. @see docs/api.md#states-of-a-payout */
export const PAYOUT_MOVES = {
  created: ['submitted', 'failed'],
  submitted: ['sent', 'failed'],
  sent: ['completed', 'failed', 'returned'],
  completed: ['returned'],
  failed: [],
  returned: [],
} as const satisfies Record<PayoutStatus, readonly PayoutStatus[]>;

/** Event of each move; `created` emits none. @see docs/webhooks.md#events */
export const PAYOUT_EVENTS = {
  created: undefined,
  submitted: 'payout.submitted',
  sent: 'payout.sent',
  completed: 'payout.completed',
  failed: 'payout.failed',
  returned: 'payout.returned',
} as const satisfies Record<PayoutStatus, EventType | undefined>;

/** Whether the workflow ends in this state; a return opens a completed payout again. */
export function isEnded(status: PayoutStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'returned';
}

/** States in which its workflow runs. */
export const PAYOUT_IN_FLIGHT = PAYOUT_STATUSES.filter((status) => !isEnded(status));

/**
 * A payout can come back for 60 days, counted from its completion, or from `sent`.
 * @see docs/decisions.md#payouts
 */
const RETURN_DAYS = 60;

/** The acts that an operator may ask of a payout. */
export const PAYOUT_ACTS = [
  'resubmit',
  'mark_failed',
  'mark_completed',
  'mark_returned',
  'snooze',
] as const;
export type PayoutAct = (typeof PAYOUT_ACTS)[number];

/** Whether the bank still has to hand the payout to the scheme. */
export function isUnsent(status: PayoutStatus): boolean {
  return status === 'created' || status === 'submitted';
}

/** Reasons why a payout needs a person: the values of `ServiceAttention`. */
export type PayoutAttention =
  /** Payouts past their due time, by the state they are stuck in. */
  | 'not_submitted'
  | 'not_sent'
  | 'not_completed'
  /** The workflow was ended from outside and started again. */
  | 'restarted_in_flight'
  /** Reports of a bank that could not be applied. */
  | 'failed_after_completed'
  | 'moved_after_failed'
  | 'moved_after_returned'
  | 'second_return'
  | 'return_too_late'
  | 'return_not_possible'
  /** The bank speaks of other money than was asked for. */
  | 'amount_differs'
  | 'malformed_callback'
  | 'sender_not_known';

/** Mark of a payout that is past its due time, by its state. */
export const OVERDUE = {
  created: 'not_submitted',
  submitted: 'not_sent',
  sent: 'not_completed',
} as const satisfies Partial<Record<PayoutStatus, PayoutAttention>>;

/** Effect of a callback on a payout in a given state. */
export type PayoutDecision =
  | { kind: 'move'; to: readonly PayoutStatus[] }
  | { kind: 'unapplied'; reason: string; attention?: PayoutAttention };

const move = (...to: PayoutStatus[]): PayoutDecision => ({ kind: 'move', to });
const unapplied = (reason: string, attention?: PayoutAttention): PayoutDecision => ({
  kind: 'unapplied',
  reason,
  ...(attention === undefined ? {} : { attention }),
});
const passed = unapplied('the payout has passed this state already');

/**
 * Decisions for every status × every callback; the record skips no state.
 * @see docs/decisions.md#payouts
 */
const DECISIONS: Record<PayoutStatus, Record<PayoutCallbackName, PayoutDecision>> = {
  created: {
    submitted: move('submitted'),
    sent: move('submitted', 'sent'),
    completed: move('submitted', 'sent', 'completed'),
    failed: move('failed'),
    returned: move('submitted', 'sent', 'returned'),
  },
  submitted: {
    submitted: passed,
    sent: move('sent'),
    completed: move('sent', 'completed'),
    failed: move('failed'),
    returned: move('sent', 'returned'),
  },
  sent: {
    submitted: passed,
    sent: passed,
    completed: move('completed'),
    failed: move('failed'),
    returned: move('returned'),
  },
  completed: {
    submitted: passed,
    sent: passed,
    completed: passed,
    failed: unapplied('a completed payout never fails', 'failed_after_completed'),
    returned: move('returned'),
  },
  failed: {
    submitted: passed,
    sent: unapplied('the payout has failed; its money was given back', 'moved_after_failed'),
    completed: unapplied('the payout has failed; its money was given back', 'moved_after_failed'),
    failed: passed,
    returned: unapplied('the payout has failed; its money was given back', 'moved_after_failed'),
  },
  returned: {
    submitted: passed,
    sent: passed,
    completed: unapplied('the payout has come back already', 'moved_after_returned'),
    failed: unapplied('the payout has come back already', 'moved_after_returned'),
    returned: unapplied('the payout has come back already', 'second_return'),
  },
};

const DAY_MS = 86_400_000;

/** Facts that decide whether a payout can come back. */
export interface Returnable {
  can_be_returned: boolean;
  /** ISO 8601; null before it is sent. */
  sent_at: string | null;
  completed_at: string | null;
}

/**
 * Decides the effect of `callback` on a payout in `status`; pure. A return counts only on rails
 * that have returns, and for 60 days, the last millisecond included.
 * @param at time of the report, in ms since the epoch
 */
export function decidePayout(
  status: PayoutStatus,
  callback: PayoutCallbackName,
  returnable: Returnable,
  at: number,
): PayoutDecision {
  const decision = DECISIONS[status][callback];
  if (callback !== 'returned' || decision.kind !== 'move') return decision;
  if (!returnable.can_be_returned) {
    return unapplied('nothing comes back on this rail', 'return_not_possible');
  }
  const since = returnable.completed_at ?? returnable.sent_at;
  if (since !== null && at > Date.parse(since) + RETURN_DAYS * DAY_MS) {
    return unapplied(`a payout comes back within ${RETURN_DAYS} days`, 'return_too_late');
  }
  return decision;
}

/** States passed through on the way to the one that the bank, or an operator, reports. */
export function wayTo(
  from: PayoutStatus,
  to: 'submitted' | 'sent' | 'completed' | 'returned',
): readonly PayoutStatus[] {
  const decision = DECISIONS[from][to];
  return decision.kind === 'move' ? decision.to : [];
}

/** Failures of payouts for which the bank gave no reason of its own. */
export const PAYOUT_FAILURES = {
  bank: { code: 'payout_rejected', message: 'The bank rejected the payout.' },
  operator: { code: 'failed_at_bank', message: 'The bank reported that the payout failed.' },
} as const satisfies Record<string, Failure>;

/** Reason why a payout came back. @see docs/api.md#states-of-a-payout */
export interface Return {
  code: string;
  /** Reason given by the receiving bank. */
  reason: string;
}

export const RETURNS = {
  bank: { code: 'returned', reason: 'The receiving bank sent the payout back.' },
  operator: { code: 'returned', reason: 'The bank reported that the payout came back.' },
} as const satisfies Record<string, Return>;

/** Id of the workflow that runs a payout's lifecycle. */
export function payoutWorkflowId(payoutId: string): string {
  return `payout:${payoutId}`;
}
