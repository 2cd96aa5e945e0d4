import { CLOCK_MS_MAX, type ClockTarget, type StoredClock } from './clock';

export type ClockRequest = { by_ms: number } | { to: string };

/** A month or a year has no fixed length. */
const DURATION = /^P(?=.)(?:(\d{1,6})D)?(?:T(?=.)(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,10})S)?)?$/;
const UNITS_MS = [86_400_000, 3_600_000, 60_000, 1_000];

/** @returns ms; undefined for any other text */
export function parseDuration(text: string): number | undefined {
  const parts = DURATION.exec(text)?.slice(1);
  return parts?.reduce((sum, part, i) => sum + Number(part ?? 0) * (UNITS_MS[i] ?? 0), 0);
}

/** @returns the end in account time, or a fault in words, with its field */
export function planAdvance(
  request: ClockRequest,
  stored: StoredClock | undefined,
  now: Date,
): ClockTarget | { field: 'advance' | 'to'; fault: string } {
  const offset_ms = stored?.offset_ms ?? 0;
  const account_ms = now.getTime() + offset_ms;
  const at_ms = 'to' in request ? Date.parse(request.to) : account_ms + request.by_ms;
  const field = 'to' in request ? 'to' : 'advance';
  const at = new Date(account_ms).toISOString();
  if (at_ms <= account_ms) return { field, fault: `must be later than ${at}, the account's time` };
  const target_ms = at_ms - now.getTime();
  if (target_ms > CLOCK_MS_MAX) {
    const days = CLOCK_MS_MAX / 86_400_000;
    return { field, fault: `must be at most ${days} days after the real time, in all` };
  }
  return { offset_ms: target_ms, at: new Date(at_ms).toISOString() };
}
