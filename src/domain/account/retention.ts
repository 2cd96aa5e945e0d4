/** Type of the daily workflow that deletes personal data after its retention period. */
export const RETENTION_WORKFLOW = 'retention';

export const PAYER_MONTHS = 18;

/** Counted from the last payout. */
export const RECIPIENT_MONTHS = 13;

export const MONTHS_MAX = 120;

export interface RetentionResult {
  recipients: number;
  payers: number;
}

/** Subtracts months in UTC; uses the last day of a month that has no such day. */
export function monthsBefore(now: Date, months: number): Date {
  const before = new Date(now);
  before.setUTCDate(1);
  before.setUTCMonth(before.getUTCMonth() - months);
  const days = new Date(Date.UTC(before.getUTCFullYear(), before.getUTCMonth() + 1, 0));
  before.setUTCDate(Math.min(now.getUTCDate(), days.getUTCDate()));
  return before;
}
