import type { PayeeResult, PayoutCallbackName } from '../banks/callback';
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
import type { WorkflowInput } from '../workflow-input';
import { isRailId, type RailId, railRules } from './rails';

/** @see docs/api.md#states-of-a-payout */
export const PAYOUT_STATUSES = [
  /** Accepted, with amount and fee reserved; not at the bank yet. */
  'created',
  /** Queued at the bank. */
  'submitted',
  /** Handed to the scheme; amount and fee are captured. */
  'sent',
  /** The money reached the recipient; it may still come back. */
  'completed',
  /** The money never left; amount and fee are released. Final. */
  'failed',
  /** The money came back; the amount is credited, the fee is not. Final. */
  'returned',
] as const;

export type PayoutStatus = (typeof PAYOUT_STATUSES)[number];

export const PAYOUT_TRANSITIONS = {
  created: ['submitted', 'failed'],
  submitted: ['sent', 'failed'],
  sent: ['completed', 'failed', 'returned'],
  completed: ['returned'],
  failed: [],
  returned: [],
} as const satisfies Record<PayoutStatus, readonly PayoutStatus[]>;

/** @see docs/webhooks.md#events */
export const PAYOUT_EVENTS = {
  created: undefined,
  submitted: 'payout.submitted',
  sent: 'payout.sent',
  completed: 'payout.completed',
  failed: 'payout.failed',
  returned: 'payout.returned',
} as const satisfies Record<PayoutStatus, EventType | undefined>;

/** A return resumes a completed payout. */
export function isEnded(status: PayoutStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'returned';
}

export const PAYOUT_IN_FLIGHT = PAYOUT_STATUSES.filter((status) => !isEnded(status));

/** Counted from completion, or from sending. @see docs/decisions.md#payouts */
const RETURN_DAYS = 60;

export const PAYOUT_ACTS = [
  'resubmit',
  'mark_failed',
  'mark_completed',
  'mark_returned',
  'release_unverified',
  'resolve_movement',
  'snooze',
  'acknowledge',
] as const;
export type PayoutAct = (typeof PAYOUT_ACTS)[number];

/** The bank still has to hand it to the scheme. */
export function isUnsent(status: PayoutStatus): boolean {
  return status === 'created' || status === 'submitted';
}

/** Newest result that a bank has reported of the recipient's name. */
export interface PayeeVerification {
  result: PayeeResult;
  /** ISO 8601, ms. */
  checked_at: string;
}

export interface StoredVerification extends PayeeVerification {
  /** An operator lets the payout be sent all the same. */
  released?: true;
}

/** Values of `ServiceAttention`. */
export type PayoutAttention =
  | 'not_submitted'
  | 'not_sent'
  | 'not_completed'
  /** The bank says that it had arrived before, and may execute that first copy. */
  | 'called_duplicate'
  /** The bank could not confirm the recipient's name. */
  | 'payee_not_verified'
  /** The workflow was ended from outside and restarted. */
  | 'restarted_in_flight'
  | 'failed_after_completed'
  | 'moved_after_failed'
  | 'moved_after_returned'
  | 'second_return'
  | 'second_completion'
  | 'return_too_late'
  | 'return_not_possible'
  | 'debit_reversed'
  | 'return_reversed'
  | 'amount_differs'
  | CommonAttention;

export const OVERDUE_ATTENTION = {
  created: 'not_submitted',
  submitted: 'not_sent',
  sent: 'not_completed',
} as const satisfies Partial<Record<PayoutStatus, PayoutAttention>>;

type PayoutDecision = Decision<PayoutStatus, PayoutAttention>;
const calledDuplicate = unapplied(
  'the bank may execute what had arrived before: nothing is given back',
  'called_duplicate',
);
const alreadyPassed = unapplied('the payout has passed this state already');
const alreadyFailed = unapplied(
  'the payout has failed; its money was given back',
  'moved_after_failed',
);

/** The bank's corrections, and what it says of a name, change no status. */
const corrections = {
  payee_verified: unapplied('it says how the bank has checked the name'),
  debit_reversed: unapplied('the bank has reversed its debit', 'debit_reversed'),
  return_reversed: unapplied('the bank has reversed the return', 'return_reversed'),
} as const;

/** No path skips a state. @see docs/decisions.md#payouts */
const DECISIONS: Record<PayoutStatus, Record<PayoutCallbackName, PayoutDecision>> = {
  created: {
    submitted: transition('submitted'),
    sent: transition('submitted', 'sent'),
    completed: transition('submitted', 'sent', 'completed'),
    failed: transition('failed'),
    returned: transition('submitted', 'sent', 'returned'),
    called_duplicate: calledDuplicate,
    ...corrections,
  },
  submitted: {
    submitted: alreadyPassed,
    sent: transition('sent'),
    completed: transition('sent', 'completed'),
    failed: transition('failed'),
    returned: transition('sent', 'returned'),
    called_duplicate: calledDuplicate,
    ...corrections,
  },
  sent: {
    submitted: alreadyPassed,
    sent: alreadyPassed,
    completed: transition('completed'),
    failed: transition('failed'),
    returned: transition('returned'),
    called_duplicate: alreadyPassed,
    ...corrections,
  },
  completed: {
    submitted: alreadyPassed,
    sent: alreadyPassed,
    completed: alreadyPassed,
    failed: unapplied('a completed payout never fails', 'failed_after_completed'),
    returned: transition('returned'),
    called_duplicate: alreadyPassed,
    ...corrections,
  },
  failed: {
    submitted: alreadyPassed,
    sent: alreadyFailed,
    completed: alreadyFailed,
    failed: alreadyPassed,
    returned: alreadyFailed,
    called_duplicate: alreadyPassed,
    ...corrections,
  },
  returned: {
    submitted: alreadyPassed,
    sent: alreadyPassed,
    completed: unapplied('the payout has come back already', 'moved_after_returned'),
    failed: unapplied('the payout has come back already', 'moved_after_returned'),
    returned: unapplied('the payout has come back already', 'second_return'),
    called_duplicate: alreadyPassed,
    ...corrections,
  },
};

const DAY_MS = 86_400_000;

export interface Returnable {
  can_be_returned: boolean;
  /** ISO 8601; null before it is sent. */
  sent_at: string | null;
  completed_at: string | null;
}

/**
 * Applies a return only on rails that have returns, for 60 days, the last millisecond included.
 * @param at ms since the epoch
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

export function pathTo(
  from: PayoutStatus,
  to: 'submitted' | 'sent' | 'completed' | 'returned',
): readonly PayoutStatus[] {
  const decision = DECISIONS[from][to];
  return decision.kind === 'move' ? decision.to : [];
}

export const PAYOUT_FAILURES = {
  bank: { code: 'payout_rejected', message: 'The bank rejected the payout.' },
  operator: { code: 'failed_at_bank', message: 'The bank reported that the payout failed.' },
} as const satisfies Record<string, Failure>;

export interface Return {
  code: string;
  reason: string;
}

export const RETURNS = {
  bank: { code: 'returned', reason: 'The receiving bank sent the payout back.' },
  operator: { code: 'returned', reason: 'The bank reported that the payout came back.' },
} as const satisfies Record<string, Return>;

export function payoutWorkflowId(payoutId: string): string {
  return `payout:${payoutId}`;
}

export interface PayoutInput extends WorkflowInput {
  payout_id: string;
  /** Minor units. */
  amount: number;
  /** Minor units, in addition to the amount. */
  fee: number;
  recipient_id: string;
  balance_account: string;
  /** The caller of `open` limits its wait, so the workflow needs no timer. */
  caller_waits?: true;
}

export type PayoutResume = Resume<'payout_id'>;

export type PayoutStart = PayoutInput | PayoutResume;

export type PayoutState = State<'payout_id', PayoutStatus>;
export type PayoutResult = PayoutState | Refused<'payout_id'>;

export type FeeName = RailId | `${RailId}:${string}`;

/** Minor units of the payout's currency. */
export type PayoutFees = Partial<Record<FeeName, number>>;

/** @see docs/ledger.md#fees-of-payouts */
export function payoutFee(fees: PayoutFees, rail: RailId, currency: string): number {
  return fees[`${rail}:${currency}`] ?? fees[rail] ?? 0;
}

/** @returns undefined for an unknown rail, or a currency that it lacks */
export function parseFeeName(text: string): FeeName | undefined {
  const [rail = '', currency, ...more] = text.split(':');
  if (!isRailId(rail) || more.length > 0) return undefined;
  if (currency === undefined) return rail;
  return railRules(rail).currencies.includes(currency) ? `${rail}:${currency}` : undefined;
}

/** Returns 0 for a currency without a limit once any other has one. */
export function findPayoutLimit(
  limits: Readonly<Record<string, number>> = {},
  currency: string,
): number | undefined {
  return limits[currency] ?? (Object.keys(limits).length === 0 ? undefined : 0);
}

/**
 * Held in the transaction that reserves the money, activities/payouts.ts.
 * @param spentToday minor units of today's other payouts
 */
export function limitFault(
  limit: number | undefined,
  spentToday: number,
  { amount, currency }: { amount: number; currency: string },
): RuleViolation | undefined {
  if (limit === undefined || spentToday + amount <= limit) return undefined;
  const remaining = formatMoney(Math.max(0, limit - spentToday), currency);
  const message = `The account can pay out ${remaining} more today (UTC).`;
  return { code: 'payout_limit_exceeded', message };
}

/** A payout is accepted within this time or not at all. @see docs/decisions.md#payouts */
export const ACCEPT_WITHIN_MS = 5_000;
