import { condition, defineUpdate } from '@temporalio/workflow';
import {
  type AccountTime,
  CLOCK_MS_MAX,
  type ClockAdvance,
} from '../../src/domain/merchants/clock';
import { refuse } from './refusal';

interface Wait {
  offset_ms: number;
  /** Account time, ms since the epoch; null when nothing is due by time. */
  due_at_ms: number | null;
}

/**
 * Everything that a merchant sees or waits for follows it; attempts at a bank and audit lines keep
 * the real time.
 * @see docs/api.md#sandbox-clock
 */
export interface AccountClock {
  /** Ahead of the real time; 0 in live. */
  offset_ms: number;
  wait: Wait | undefined;
  hasAdvanced: boolean;
}

export const ADVANCE_CLOCK = defineUpdate<Pick<Wait, 'due_at_ms'>, [ClockAdvance]>('advance_clock');
export const ADVANCE_CLOCK_DESCRIPTION =
  'Moves the time of a sandbox resource forward, sent by `clock:{account}`: {"offset_ms": 60000}.';

export function startClock(start: unknown): AccountClock {
  const { clock }: { clock?: AccountTime } = Object(start);
  return { offset_ms: clock?.offset_ms ?? 0, wait: undefined, hasAdvanced: false };
}

/** Account time in ms since the epoch. */
export function now({ clock }: { clock: AccountClock }): number {
  return Date.now() + clock.offset_ms;
}

/** Account time as ISO 8601, ms. */
export function timestamp(owner: { clock: AccountClock }): string {
  return new Date(now(owner)).toISOString();
}

export function toRealTime({ offset_ms }: AccountClock, at: number): number {
  return at - offset_ms;
}

/** Sets the clock never later than a reload says, and never back. */
export function syncClock(clock: AccountClock, stored: AccountTime | undefined): void {
  clock.offset_ms = Math.max(clock.offset_ms, stored?.offset_ms ?? 0);
}

export function assertClockAdvance(advance: ClockAdvance): void {
  const offset_ms: unknown = Object(advance).offset_ms;
  if (Number.isSafeInteger(offset_ms) && Number(offset_ms) >= 0) {
    if (Number(offset_ms) <= CLOCK_MS_MAX) return;
  }
  refuse('invalid_request', `offset_ms: must be from 0 to ${CLOCK_MS_MAX}`);
}

/** Returns when everything that is due by then is done. */
export async function advanceClock(
  clock: AccountClock,
  { livemode }: { livemode: boolean },
  { offset_ms }: ClockAdvance,
): Promise<Pick<Wait, 'due_at_ms'>> {
  if (livemode) refuse('sandbox_only', 'The time of a live resource cannot be moved.');
  clock.offset_ms = Math.max(clock.offset_ms, offset_ms);
  // What arrived before is handled first.
  clock.wait = undefined;
  clock.hasAdvanced = true;
  let wait: Wait | undefined;
  await condition(() => {
    wait = clock.wait;
    return wait !== undefined && wait.offset_ms >= offset_ms;
  });
  return { due_at_ms: wait?.due_at_ms ?? null };
}
