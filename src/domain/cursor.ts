const MINUTE_MS = 60_000;
/** Positions within one millisecond. */
export const TIES = 1_000_000;
const TIE_MAX = TIES - 1;

const POSITION_LENGTH = 'YYYY-MM-DDTHH:mm:ss.nnnnnnnnnZ'.length;
const CREATED_AT_LENGTH = 'YYYY-MM-DDTHH:mm:ss.nnnZ'.length;

const DATE = /(\d{4})-(\d{2})-(\d{2})/.source;
const TIME = /(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?/.source;
const OFFSET = /(?:[Zz]|([+\- ])(\d{2})(?::?(\d{2}))?)/.source;
const DATE_TIME = new RegExp(`^${DATE}[Tt]${TIME}${OFFSET}$`);

/**
 * Builds a `next_cursor`: `YYYY-MM-DDTHH:mm:ss.nnnnnnnnnZ`, of the milliseconds and a six-digit
 * tie-break. The fixed width makes it sort as text.
 * @see docs/decisions.md#lists
 * @throws RangeError for a year outside 0001 to 9999, or a tie-break outside 0 to 999,999
 */
export function buildPosition(createdAtMs: number, tie: number): string {
  if (!Number.isInteger(tie) || tie < 0 || tie > TIE_MAX) {
    throw new RangeError(`The tie-break must be an integer from 0 to ${TIE_MAX}`);
  }
  const text = Number.isInteger(createdAtMs) ? isoText(createdAtMs) : undefined;
  if (text === undefined) throw new RangeError('The creation time must be in ms of a real date');
  return `${text.slice(0, -1)}${String(tie).padStart(6, '0')}Z`;
}

/** ISO 8601, ms. */
export function readPositionTime(position: string): string {
  return `${position.slice(0, 'YYYY-MM-DDTHH:mm:ss.nnn'.length)}Z`;
}

/** Position at which a time begins. @returns undefined as `parseCreatedBefore` */
export function parsePosition(text: string): string | undefined {
  return parseCreatedBefore(text)
    ?.slice(0, -1)
    .padEnd(POSITION_LENGTH - 1, '0')
    .concat('Z');
}

/**
 * Finds the positions that have more digits than a time is written with: one of them may be the
 * cursor of which a date type has cut the last.
 * @param time as of `parseCreatedBefore`
 * @returns the position at which the time begins, exclusive bounds, and the number of rows between
 *   them from which it is refused; undefined for a whole position
 */
export function findUncutRange(
  time: string,
): { position: string; after: string; until: string; rowsMin: number } | undefined {
  if (time.length >= POSITION_LENGTH) return undefined;
  const digits = time.slice(0, -1);
  const position = `${digits.padEnd(POSITION_LENGTH - 1, '0')}Z`;
  // Above every digit.
  const until = `${digits}:`;
  // A row's own `created_at` has milliseconds, too: cut so, the cursor of a single row skips none.
  return time.length > CREATED_AT_LENGTH
    ? { position, after: position, until, rowsMin: 1 }
    : { position, after: digits, until, rowsMin: 2 };
}

/**
 * Parses an ISO 8601 date-time with an offset: in UTC, with its own number of fractional digits. A
 * space means `+`, which a query string makes a space.
 * @see docs/api.md#cancel-read-list
 * @returns undefined for a time that does not exist or is outside the years 0001 to 9999
 */
export function parseCreatedBefore(text: string): string | undefined {
  const match = DATE_TIME.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((digits = '0') => Number(digits));
  const [fraction = '', sign = '+', offsetHour = '00', offsetMinute = '00'] = match.slice(7);
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined;

  const offset = Number(offsetHour) * 60 + Number(offsetMinute);
  const local = new Date(0);
  // Date.UTC would map the years 0 to 99 to 1900 to 1999.
  local.setUTCFullYear(year, month - 1, day);
  if (local.getUTCMonth() !== month - 1 || local.getUTCDate() !== day) return undefined;
  local.setUTCHours(hour, minute, second);
  const utc = isoText(local.getTime() - (sign === '-' ? -offset : offset) * MINUTE_MS);
  return utc && `${utc.slice(0, 19)}.${fraction}Z`;
}

function isoText(ms: number): string | undefined {
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9999 ? date.toISOString() : undefined;
}
