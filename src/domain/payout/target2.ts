/** TARGET2 calendar of SEPA transfers: Monday to Friday in Frankfurt, except six holidays. */

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const CLOSING_HOUR = 18;

interface Day {
  year: number;
  month: number;
  day: number;
}

const FIXED_HOLIDAYS = new Set(['1-1', '5-1', '12-25', '12-26']);

export function isBusinessDay(day: Day): boolean {
  const at = toUtc(day);
  const weekday = new Date(at).getUTCDay();
  if (weekday === 0 || weekday === 6 || FIXED_HOLIDAYS.has(`${day.month}-${day.day}`)) return false;
  const easter = easterSunday(day.year);
  // Good Friday and Easter Monday are holidays.
  return at !== easter - 2 * DAY_MS && at !== easter + DAY_MS;
}

/**
 * Latest arrival of a transfer: 18:00 in Frankfurt on the next business day.
 * @param at ms since the epoch
 */
export function endOfNextBusinessDay(at: number): number {
  let day = toUtc(toDay(at + offsetAt(at))) + DAY_MS;
  while (!isBusinessDay(toDay(day))) day += DAY_MS;
  const closing = day + CLOSING_HOUR * HOUR_MS;
  return closing - offsetAt(closing - HOUR_MS);
}

function toDay(ms: number): Day {
  const date = new Date(ms);
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
}

function toUtc({ year, month, day }: Day): number {
  return Date.UTC(year, month - 1, day);
}

/** Offset of local time from UTC in ms; summer time ends on the last Sunday of October. */
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

/** Easter Sunday, by the Gregorian computus of Meeus, Jones and Butcher. */
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
