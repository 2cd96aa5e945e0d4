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

export function isDisputeClosed(status: DisputeStatus): boolean {
  return !DISPUTE_IN_FLIGHT.some((each) => each === status);
}

export const DISPUTE_ID = /^dp_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Characters of all texts of the evidence. */
export const EVIDENCE_LENGTH_MAX = 20_000;

export function disputeWorkflowId(dispute_id: string): string {
  return `dispute:${dispute_id}`;
}
