const MINUTE_MS = 60_000;
const TIE_MAX = 999_999;

const DATE = /(\d{4})-(\d{2})-(\d{2})/.source;
const TIME = /(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?/.source;
const OFFSET = /(?:[Zz]|([+\- ])(\d{2})(?::?(\d{2}))?)/.source;
const DATE_TIME = new RegExp(`^${DATE}[Tt]${TIME}${OFFSET}$`);

/**
 * Makes the position of a row in its list, which is its `next_cursor`, too:
 * `YYYY-MM-DDTHH:mm:ss.nnnnnnnnnZ`, UTC. The first three fractional digits are those of the row's
 * created_at; the last six tell rows of one millisecond apart. The width is fixed, so that
 * positions sort as text. Each is unique per account and environment.
 * `next_cursor` is a valid timestamp with extra fractional digits as a tie-break.
 * @see docs/decisions.md#lists
 * @param createdAtMs integer, ms since 1970
 * @param tie integer, 0 to 999,999
 * @throws RangeError when either is out of range (years 0001 to 9999)
 */
export function positionOf(createdAtMs: number, tie: number): string {
  if (!Number.isInteger(tie) || tie < 0 || tie > TIE_MAX) {
    throw new RangeError(`The tie-break must be an integer from 0 to ${TIE_MAX}`);
  }
  const text = Number.isInteger(createdAtMs) ? isoText(createdAtMs) : undefined;
  if (text === undefined) throw new RangeError('The creation time must be in ms of a real date');
  return `${text.slice(0, -1)}${String(tie).padStart(6, '0')}Z`;
}

/**
 * Reads a `created_before`: an ISO 8601 date-time with an offset (`Z`, `±hh:mm`, `±hhmm` or `±hh`, in
 * either letter case as RFC 3339 has it). Seconds may be left out, or have up to 9 fractional digits. Normalises it to the form of
 * `positionOf` without losing a digit. A space counts as `+`, since a query string turns `+` into a
 * space. Rows whose position sorts before the result were created before it.
 * @returns undefined when it isn't a real moment of the years 0001 to 9999: day 30 of February,
 *   24:00, second 60, an offset past 23:59
 * @see docs/api.md#cancel-read-list
 */
export function parseCreatedBefore(text: string): string | undefined {
  const match = DATE_TIME.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((digits = '0') => Number(digits));
  const [fraction = '', sign = '+', offsetHour = '00', offsetMinute = '00'] = match.slice(7);
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined;

  const offset = Number(offsetHour) * 60 + Number(offsetMinute);
  const local = new Date(0);
  // Date.UTC would take the years 0 to 99 for 1900 to 1999.
  local.setUTCFullYear(year, month - 1, day);
  local.setUTCHours(hour, minute, second);
  const utc = isoText(local.getTime() - (sign === '-' ? -offset : offset) * MINUTE_MS);
  // The fraction stays text, since a Date keeps only milliseconds.
  return utc && `${utc.slice(0, 19)}.${fraction.padEnd(9, '0')}Z`;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/** Writes `YYYY-MM-DDTHH:mm:ss.sssZ`; undefined outside the years 0001 to 9999. */
function isoText(ms: number): string | undefined {
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9999 ? date.toISOString() : undefined;
}
