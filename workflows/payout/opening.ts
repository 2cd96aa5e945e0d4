import {
  ApplicationFailure,
  condition,
  proxyLocalActivities,
  sleep,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { LifecycleActivities } from '../../activities';
import type { OpenPayout, PayoutOpening } from '../../activities/payouts';
import { NO_LOCK } from '../../src/domain/no-lock';
import { ACCEPT_WITHIN_MS, isUnsent, type PayoutStart } from '../../src/domain/payout/payout';
import { getResource, openMailbox, requireAccepted } from '../shared/inbox';
import { writeScheduled } from '../shared/persist';
import { refuse } from '../shared/refusal';
import type { Payout, PayoutMailbox } from './state';

/** Additional time until the opening is known. */
const GRACE_MS = 1_000;

/** Longer than the slowest acceptance, and far within the time of a task. @see workflows/shared/persist.ts */
const ATTEMPT_MS_MAX = 2_000;
const PAUSE_MS = 200;
/** Jittered pause of a debit without the lock. */
const NO_LOCK_PAUSE_MS = 300;

export function openPayoutMailbox(start: PayoutStart): PayoutMailbox {
  const acceptBy = workflowInfo().startTime.getTime() + ACCEPT_WITHIN_MS;
  // A resumed payout was accepted before. An input that is no object is refused after this.
  return { ...openMailbox(start), acceptBy, attempted: 'resume' in Object(start) };
}

/** @param callerWaits the caller itself ends the wait */
export async function untilSent(mail: PayoutMailbox, callerWaits: boolean): Promise<Payout> {
  const isKnown = () => mail.opening !== undefined;
  const isSent = () => {
    const payout = getResource(mail);
    return isKnown() && (payout === undefined || !isUnsent(payout.status));
  };
  if (callerWaits) {
    // A waiting handler would keep a long history from continuing in a new run.
    await condition(() => isSent() || workflowInfo().continueAsNewSuggested);
    return requireAccepted(mail.opening);
  }
  // A timer would only start after the local activity that accepts the payout.
  await condition(() => mail.attempted);
  const left = Math.max(1, mail.acceptBy - Date.now());
  await condition(isSent, left, { summary: 'The API answers' });
  if (!isKnown()) await condition(isKnown, GRACE_MS, { summary: 'The API answers' });
  if (isKnown()) return requireAccepted(mail.opening);
  return refuse('temporarily_unavailable', 'It is not known yet whether the payout was accepted.');
}

/**
 * Reserves in time, or releases the key: an attempt that was given up may still succeed. Scheduled,
 * since a repeated task must find the idempotency record.
 */
export async function reserve(mail: PayoutMailbox, input: OpenPayout): Promise<PayoutOpening> {
  const opening = await reserveInTime(input);
  mail.attempted = true;
  if (opening?.outcome === 'accepted') return opening;
  const lateOpening = await writeScheduled((activities) => activities.abandonPayout(input));
  return lateOpening.outcome === 'accepted' ? lateOpening : (opening ?? lateOpening);
}

/**
 * Makes each attempt an activity, since the workflow's clock stands still while the SDK repeats a
 * local one.
 */
async function reserveInTime(input: OpenPayout): Promise<PayoutOpening | undefined> {
  const timeLeft = () => input.accept_by_ms - Date.now();
  for (let left = timeLeft(); left > 0; left = timeLeft()) {
    const { openPayout } = proxyLocalActivities<LifecycleActivities>({
      scheduleToCloseTimeout: Math.min(left, ATTEMPT_MS_MAX),
      retry: { maximumAttempts: 1 },
    });
    try {
      return await openPayout(input);
    } catch (error) {
      // A local time-out is an `ActivityFailure` at first, and a bare `TimeoutFailure` in a replay.
      if (!(error instanceof TemporalFailure)) throw error;
      await sleep(pauseAfter(error), { summary: 'Accept the payout again' });
    }
  }
  return undefined;
}

function pauseAfter({ cause }: TemporalFailure): number {
  const hasNoLock = cause instanceof ApplicationFailure && cause.type === NO_LOCK;
  return hasNoLock ? NO_LOCK_PAUSE_MS * (1 + Math.random()) : PAUSE_MS;
}
