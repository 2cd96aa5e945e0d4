/** Value of `ServiceAttention` while a write is repeated for long. */
export const STEP_STUCK_REASON = 'record_stuck';

/** Signal of an activity to its own workflow. */
export const STEP_STUCK_SIGNAL = 'step_stuck';

/** About five minutes. */
const ATTEMPTS = 16;

/** Reports rarer and rarer: each one is an event of the history. */
export function reportsStuck(attempt: number): boolean {
  return attempt >= ATTEMPTS && Number.isInteger(Math.log2(attempt));
}
