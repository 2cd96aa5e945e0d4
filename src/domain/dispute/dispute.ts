import type { CommonAttention } from '../lifecycle';

/** @see docs/api.md#disputes */
export const DISPUTE_STATUSES = [
  /** The bank waits for evidence until its deadline, or for an acceptance. */
  'needs_response',
  /** The bank, or the scheme, decides. */
  'under_review',
  /** Decided for the merchant. */
  'won',
  /** Decided for the customer. */
  'lost',
  /** The merchant gave in. */
  'accepted',
] as const;

export type DisputeStatus = (typeof DISPUTE_STATUSES)[number];

export const DISPUTE_IN_FLIGHT = [
  'needs_response',
  'under_review',
] as const satisfies DisputeStatus[];
export type OpenDisputeStatus = (typeof DISPUTE_IN_FLIGHT)[number];

/** A present status stays where only money, or a deadline, changes. */
export const DISPUTE_TRANSITIONS = {
  needs_response: DISPUTE_STATUSES,
  under_review: DISPUTE_STATUSES,
  won: ['won'],
  lost: ['lost', 'won'],
  accepted: ['accepted', 'won'],
} as const satisfies Record<DisputeStatus, readonly DisputeStatus[]>;

export function isDisputeClosed(status: DisputeStatus): boolean {
  return !DISPUTE_IN_FLIGHT.some((each) => each === status);
}

/** @see docs/webhooks.md#events */
export function getDisputeEvent(from: DisputeStatus, to: DisputeStatus) {
  return from !== to && isDisputeClosed(to) ? 'dispute.closed' : 'dispute.updated';
}

export const DISPUTE_ACTS = ['accept', 'dispute_won', 'snooze', 'acknowledge'] as const;
export type DisputeAct = (typeof DISPUTE_ACTS)[number];

/** Values of `ServiceAttention`. */
export type DisputeAttention =
  | 'dispute_differs'
  /** The bank refused the evidence, or the acceptance. */
  | 'answer_refused'
  /** The bank has not confirmed the evidence, or the acceptance, in time. */
  | 'answer_overdue'
  | CommonAttention;

/** Answers of the merchant, or an operator, to the bank; each has one instruction. */
export const DISPUTE_ANSWERS = ['evidence', 'acceptance'] as const;
export type DisputeAnswer = (typeof DISPUTE_ANSWERS)[number];

export function disputeInstructionId(dispute_id: string, answer: DisputeAnswer): string {
  return `${answer}:${dispute_id}`;
}

export const DISPUTE_ID = /^dp_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Characters of all texts of the evidence. */
export const EVIDENCE_LENGTH_MAX = 20_000;

/** Before the deadline, the merchant's team gets a mail. */
export const REMINDER_MS = 72 * 3_600_000;

export function disputeWorkflowId(dispute_id: string): string {
  return `dispute:${dispute_id}`;
}
