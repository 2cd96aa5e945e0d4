/** Value of the search attribute `ServiceAttention` while a write is repeated for long. */
export const STEP_STUCK_REASON = 'record_stuck';

/** Signal of an activity to its own workflow. */
export const STEP_STUCK_SIGNAL = 'step_stuck';

/** Attempts after which a step is stuck: about five minutes. */
const ATTEMPTS = 16;

/** Whether this attempt reports it: rarer and rarer, because each report is a line of the history. */
export function reportsStuck(attempt: number): boolean {
  return attempt >= ATTEMPTS && Number.isInteger(Math.log2(attempt));
}
