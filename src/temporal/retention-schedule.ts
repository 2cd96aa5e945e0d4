import type { Client } from '@temporalio/client';
import { RETENTION_WORKFLOW } from '../domain/account/retention';
import { ensureSchedule } from './schedules';

const HOUR_MS = 3_600_000;

export function retentionScheduleId(lifecycleQueue: string): string {
  return `service-retention:${lifecycleQueue}`;
}

/**
 * Creates or updates the schedule that deletes personal data at 03:00 UTC after its retention period;
 * a pause is kept. Several workers may call it at once.
 * @throws Error of Temporal, for example without the permission to create schedules
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
