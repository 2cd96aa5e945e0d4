/** Type of the workflow that takes away every day what has been kept long enough. */
export const RETENTION_WORKFLOW = 'retention';

/** Months for which an account's payers are kept, where the account has no time of its own. */
export const PAYER_MONTHS = 18;

/** Most months that anything personal can be kept. */
export const MONTHS_MAX = 120;

/** Number of records that one run has changed. */
export interface RetentionResult {
  /** Recipients whose details were deleted. */
  recipients: number;
  /** Payments whose payer was blanked. */
  payers: number;
  /** Payments from before payers were sealed, whose payer was sealed. */
  sealed: number;
}

/** Time some months earlier, UTC, on the last day of a month that is too short for the day. */
export function monthsBefore(now: Date, months: number): Date {
  const before = new Date(now);
  before.setUTCDate(1);
  before.setUTCMonth(before.getUTCMonth() - months);
  const days = new Date(Date.UTC(before.getUTCFullYear(), before.getUTCMonth() + 1, 0));
  before.setUTCDate(Math.min(now.getUTCDate(), days.getUTCDate()));
  return before;
}
