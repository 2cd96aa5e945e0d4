import type { Client } from '@temporalio/client';
import { RETENTION_WORKFLOW } from '../domain/retention';
import { ensureSchedule } from './schedules';

const HOUR_MS = 3_600_000;

/** Id of the schedule; each lifecycle queue has its own. */
export function retentionScheduleId(lifecycleQueue: string): string {
  return `service-retention:${lifecycleQueue}`;
}

/**
 * Makes the schedule that takes away at 03:00 UTC what was kept long enough, or brings it up to date;
 * a pause is kept. Several workers may do it at once.
 * @throws Error of Temporal, as without the permission to make schedules
 */
export function ensureRetentionSchedule(
  temporal: Client,
  lifecycleQueue: string,
): Promise<'made' | 'changed' | 'kept'> {
  return ensureSchedule(temporal, {
    scheduleId: retentionScheduleId(lifecycleQueue),
    workflowType: RETENTION_WORKFLOW,
    workflowId: `retention:${lifecycleQueue}`,
    taskQueue: lifecycleQueue,
    everyMs: 24 * HOUR_MS,
    offsetMs: 3 * HOUR_MS,
    longestMs: 20 * HOUR_MS,
  });
}
