import {
  ActivityFailure,
  ApplicationFailure,
  log,
  proxyActivities,
  proxyLocalActivities,
} from '@temporalio/workflow';
import type { LifecycleActivities } from '../../activities';

/** In the worker's own process and cheap in history; given up soon, so that messages don't stall. */
const quick = proxyLocalActivities<LifecycleActivities>({
  startToCloseTimeout: '3s',
  retry: { maximumAttempts: 2, initialInterval: '200ms' },
});

/** MongoDB is away: wait for it in the open, where the pending activity shows in the UI. */
const patient = proxyActivities<LifecycleActivities>({
  startToCloseTimeout: '15s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
  summary: 'Write to the record',
});

/**
 * A write that an update asks for. An update that is lost with its workflow task leaves no trace,
 * so its effect must not come before the task is recorded.
 */
export function persistRecorded<T>(
  write: (activities: Pick<LifecycleActivities, keyof LifecycleActivities>) => Promise<T>,
): Promise<T> {
  return write(patient);
}

/**
 * One write of the lifecycle, repeated until it is done. Each is idempotent, so an attempt that was
 * given up may still finish behind the one that follows.
 * @throws ActivityFailure that is not retryable: a fault of ours, never an outage.
 */
export async function persist<T>(
  write: (activities: Pick<LifecycleActivities, keyof LifecycleActivities>) => Promise<T>,
): Promise<T> {
  try {
    return await write(quick);
  } catch (error) {
    const cause = error instanceof ActivityFailure ? error.cause : undefined;
    if (cause instanceof ApplicationFailure && cause.nonRetryable) throw error;
    log.warn('A write is slow; it goes on as an ordinary activity.');
    return await write(patient);
  }
}
