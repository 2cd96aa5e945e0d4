import {
  ActivityFailure,
  ApplicationFailure,
  log,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { LifecycleActivities } from '../../activities';
import type { SenderActivities } from '../../activities/shared/verification';
import { NO_LOCK } from '../../src/domain/no-lock';
import { untilWritten } from './stuck';

type Activities = LifecycleActivities & SenderActivities;

export type Write<T> = (activities: Pick<Activities, keyof Activities>) => Promise<T>;

/**
 * Cheap in history. Given up far within the time of a task: where a task times out while a local
 * activity runs in it, the SDK may report it without the signals that came meanwhile, and no worker
 * can replay that history.
 */
const quick = proxyLocalActivities<Activities>({
  scheduleToCloseTimeout: '1500ms',
  // A debit without the lock waits outside the slots of a workflow task.
  retry: { maximumAttempts: 2, initialInterval: '200ms', nonRetryableErrorTypes: [NO_LOCK] },
});

/** The pending activity shows an outage in the UI. */
const patient = proxyActivities<Activities>({
  startToCloseTimeout: '15s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
  summary: 'Write to the database',
});

/**
 * Use it where a lost workflow task loses an accepted update, and its signals come again before a
 * bank's answer; a local activity might have run already.
 */
export function writeScheduled<T>(write: Write<T>): Promise<T> {
  return untilWritten(() => write(patient));
}

/**
 * Repeats until it succeeds.
 * @throws ActivityFailure that is not retryable: our fault, never an outage
 */
export async function writeLocally<T>(write: Write<T>): Promise<T> {
  try {
    return await write(quick);
  } catch (error) {
    const cause = error instanceof ActivityFailure ? error.cause : undefined;
    if (cause instanceof ApplicationFailure && cause.nonRetryable) throw error;
    log.warn('A write is slow; it goes on as an ordinary activity.');
    return await writeScheduled(write);
  }
}
