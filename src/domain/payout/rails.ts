import { CURRENCIES } from '../money/money';

export type RecipientType = 'card' | 'bank_account';

type RailDue =
  | { kind: 'after'; seconds: number }
  /** 18:00 in Frankfurt on the next TARGET2 business day. */
  | { kind: 'next_business_day' };

export const RAIL_FIELDS = [
  'card_number',
  'date_of_birth',
  'iban',
  'sort_code',
  'account_number',
  'address_line1',
  'city',
  'postal_code',
] as const;
export type RecipientField = (typeof RAIL_FIELDS)[number];

interface PublicRail {
  display_name: string;
  recipient_type: RecipientType;
  typical_speed: string;
  can_be_returned: boolean;
}

export interface RailRules extends PublicRail {
  currencies: readonly string[];
  required_fields: readonly RecipientField[];
  /** Reaches only the SEPA area. */
  sepa: boolean;
  /** Files carry only Latin letters. @see docs/sepa.md#text */
  latin: boolean;
  due: RailDue;
}

const ADDRESS = ['address_line1', 'city', 'postal_code'] as const;

/** @see docs/api.md#rails, docs/api.md#recipients */
export const RAILS = {
  card_payout: {
    display_name: 'Card payout',
    recipient_type: 'card',
    typical_speed: 'instant',
    can_be_returned: false,
    currencies: CURRENCIES,
    required_fields: ['card_number', 'date_of_birth', ...ADDRESS],
    sepa: false,
    latin: false,
    due: { kind: 'after', seconds: 15 * 60 },
  },
  sepa_credit_transfer: {
    display_name: 'SEPA Credit Transfer',
    recipient_type: 'bank_account',
    typical_speed: 'next business day',
    can_be_returned: true,
    currencies: ['EUR'],
    required_fields: ['iban', ...ADDRESS],
    sepa: true,
    latin: true,
    due: { kind: 'next_business_day' },
  },
  sepa_instant: {
    display_name: 'SEPA Instant',
    recipient_type: 'bank_account',
    typical_speed: 'seconds',
    can_be_returned: true,
    currencies: ['EUR'],
    required_fields: ['iban', ...ADDRESS],
    sepa: true,
    latin: false,
    due: { kind: 'after', seconds: 60 },
  },
  faster_payments: {
    display_name: 'Faster Payments',
    recipient_type: 'bank_account',
    typical_speed: 'seconds to two hours',
    can_be_returned: true,
    currencies: ['GBP'],
    required_fields: ['sort_code', 'account_number'],
    sepa: false,
    latin: false,
    due: { kind: 'after', seconds: 2 * 3_600 },
  },
} as const satisfies Record<string, RailRules>;

export type RailId = keyof typeof RAILS;

export function isRailId(id: string): id is RailId {
  return Object.hasOwn(RAILS, id);
}

export const RAIL_IDS: readonly RailId[] = Object.freeze(Object.keys(RAILS).filter(isRailId));

export function railRules(id: RailId): RailRules {
  return RAILS[id];
}

/** Whether its recipient waits for the money. */
export function isInstant(method: string): boolean {
  return isRailId(method) && railRules(method).due.kind === 'after';
}

export function railEntry(id: RailId) {
  const { display_name, recipient_type, typical_speed, can_be_returned } = railRules(id);
  return { method: id, display_name, recipient_type, typical_speed, can_be_returned };
}

/** TARGET2 calendar: Monday to Friday in Frankfurt, except six holidays. */

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const CLOSING_HOUR = 18;

const FIXED_HOLIDAYS = new Set(['1-1', '5-1', '12-25', '12-26']);

/** @param day midnight, ms since the epoch */
export function isBusinessDay(day: number): boolean {
  const date = new Date(day);
  const weekday = date.getUTCDay();
  const monthAndDay = `${date.getUTCMonth() + 1}-${date.getUTCDate()}`;
  if (weekday === 0 || weekday === 6 || FIXED_HOLIDAYS.has(monthAndDay)) return false;
  const easter = easterSunday(date.getUTCFullYear());
  // Good Friday and Easter Monday.
  return day !== easter - 2 * DAY_MS && day !== easter + DAY_MS;
}

/** 18:00 in Frankfurt, the latest arrival of a transfer. @param at ms since the epoch */
export function endOfNextBusinessDay(at: number): number {
  let day = startOfDay(at) + DAY_MS;
  while (!isBusinessDay(day)) day += DAY_MS;
  const closing = day + CLOSING_HOUR * HOUR_MS;
  return closing - offsetAt(closing - HOUR_MS);
}

/** Time after a cut-off in which its file still names that day. */
const LATE_MS = 30 * 60_000;

/**
 * @param at ms since the epoch
 * @param minutes of the day in Frankfurt
 */
export function latestCutOff(at: number, minutes: number): number {
  let day = startOfDay(at);
  while (!isBusinessDay(day) || getCutOff(day, minutes) > at) day -= DAY_MS;
  return getCutOff(day, minutes);
}

/** @returns the same time of day, `days` business days later */
export function addBusinessDays(at: number, days: number): number {
  let day = startOfDay(at);
  const time = at + offsetAt(at) - day;
  for (let left = days; left > 0; ) {
    day += DAY_MS;
    if (isBusinessDay(day)) left -= 1;
  }
  const local = day + time;
  return local - offsetAt(local - HOUR_MS);
}

/** Returns `YYYY-MM-DD` in Frankfurt. */
export function dayInFrankfurt(at: number): string {
  return new Date(startOfDay(at)).toISOString().slice(0, 10);
}

/** Returns `YYYY-MM-DD`: today up to the cut-off, else the next business day. */
export function executionDay(at: number, minutes: number): string {
  let day = startOfDay(at);
  if (getCutOff(day, minutes) + LATE_MS <= at) day += DAY_MS;
  while (!isBusinessDay(day)) day += DAY_MS;
  return new Date(day).toISOString().slice(0, 10);
}

function startOfDay(at: number): number {
  return Math.floor((at + offsetAt(at)) / DAY_MS) * DAY_MS;
}

function getCutOff(day: number, minutes: number): number {
  const local = day + minutes * 60_000;
  return local - offsetAt(local - HOUR_MS);
}

/** ms; summer time ends on the last Sunday of October. */
function offsetAt(at: number): number {
  const year = new Date(at).getUTCFullYear();
  const begins = lastSunday(year, 3) + HOUR_MS;
  const ends = lastSunday(year, 10) + HOUR_MS;
  return at >= begins && at < ends ? 2 * HOUR_MS : HOUR_MS;
}

function lastSunday(year: number, month: number): number {
  const last = Date.UTC(year, month, 0);
  return last - new Date(last).getUTCDay() * DAY_MS;
}

/** Gregorian computus of Meeus, Jones and Butcher. */
function easterSunday(year: number): number {
  const a = year % 19;
  const b = Math.floor(year / 100);
  const c = year % 100;
  const h = (19 * a + b - Math.floor(b / 4) - Math.floor((8 * b + 13) / 25) + 15) % 30;
  const l = (32 + 2 * (b % 4) + 2 * Math.floor(c / 4) - h - (c % 4)) % 7;
  const m = Math.floor((a + 11 * h + 22 * l) / 451);
  const sum = h + l - 7 * m + 114;
  return Date.UTC(year, Math.floor(sum / 31) - 1, (sum % 31) + 1);
}
