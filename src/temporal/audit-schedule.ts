import type { Client } from '@temporalio/client';
import { AUDIT_WORKFLOW } from '../domain/audit';
import { ensureSchedule } from './schedules';

const HOUR_MS = 3_600_000;

/** Each lifecycle queue has its schedule. */
export function auditScheduleId(lifecycleQueue: string): string {
  return `service-audit:${lifecycleQueue}`;
}

/**
 * Creates or updates the schedule of the hourly audit; a pause is kept.
 * @throws Error of Temporal, for example without the permission to create schedules
 */
export function ensureAuditSchedule(
  temporal: Client,
  lifecycleQueue: string,
): Promise<'made' | 'changed' | 'kept'> {
  return ensureSchedule(temporal, {
    scheduleId: auditScheduleId(lifecycleQueue),
    workflowType: AUDIT_WORKFLOW,
    workflowId: `audit:${lifecycleQueue}`,
    taskQueue: lifecycleQueue,
    everyMs: HOUR_MS,
    longestMs: 3 * HOUR_MS,
  });
}
