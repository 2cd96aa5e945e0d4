export const RETENTION_WORKFLOW = 'retention';

export const PAYER_MONTHS = 18;

export const MONTHS_MAX = 120;

/** Months, unless `RETENTION_MONTHS` says otherwise. */
export const RETENTION = {
  /** Counted from the last payout. */
  recipients: 13,
  events: 13,
  dismissed_callbacks: 13,
} as const;

export type RetentionMonths = Record<keyof typeof RETENTION, number>;

const NAMES = Object.keys(RETENTION);

function isName(name: string): name is keyof RetentionMonths {
  return NAMES.includes(name);
}

/** Parses `recipients=13,events=24`; absent ones have their default. @throws Error for operators */
export function parseRetention(text: string): RetentionMonths {
  const months: RetentionMonths = { ...RETENTION };
  const parts = text.split(',').filter((part) => part.trim() !== '');
  for (const part of parts) {
    const [name = '', value = '', ...more] = part.split('=').map((each) => each.trim());
    const count = Number(value);
    const isCount = /^\d{1,3}$/.test(value) && count >= 1 && count <= MONTHS_MAX;
    if (!isName(name) || !isCount || more.length > 0) {
      throw new Error(
        `takes NAME=MONTHS from 1 to ${MONTHS_MAX}, with a NAME of ${NAMES.join(', ')}`,
      );
    }
    months[name] = count;
  }
  return months;
}

export interface RetentionResult {
  recipients: number;
  payers: number;
  records: number;
}

/** Subtracts in UTC; a day that the month lacks becomes its last. */
export function monthsBefore(now: Date, months: number): Date {
  const before = new Date(now);
  before.setUTCDate(1);
  before.setUTCMonth(before.getUTCMonth() - months);
  const days = new Date(Date.UTC(before.getUTCFullYear(), before.getUTCMonth() + 1, 0));
  before.setUTCDate(Math.min(now.getUTCDate(), days.getUTCDate()));
  return before;
}
