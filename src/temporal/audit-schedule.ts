import type { Client } from '@temporalio/client';
import { AUDIT_WORKFLOW } from '../domain/audit';
import { ensureSchedule } from './schedules';

const HOUR_MS = 3_600_000;

/** Id of the schedule; each lifecycle queue has its own. */
export function auditScheduleId(lifecycleQueue: string): string {
  return `service-audit:${lifecycleQueue}`;
}

/**
 * Makes the schedule that starts an audit every hour, or brings it up to date; a pause is kept.
 * @throws Error of Temporal, as without the permission to make schedules
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
