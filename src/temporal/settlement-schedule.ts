import type { Client } from '@temporalio/client';
import { SETTLE_WORKFLOW } from '../domain/settle';
import { ensureSchedule } from './schedules';

const HOUR_MS = 3_600_000;

/** Id of the schedule; each lifecycle queue has its own. */
export function settlementScheduleId(lifecycleQueue: string): string {
  return `service-settlements:${lifecycleQueue}`;
}

/**
 * Makes the schedule that pays balances of coins out at 02:00 UTC, or brings it up to date; a pause
 * is kept. @throws Error of Temporal, as without the permission to make schedules
 */
export function ensureSettlementSchedule(
  temporal: Client,
  lifecycleQueue: string,
): Promise<'made' | 'changed' | 'kept'> {
  return ensureSchedule(temporal, {
    scheduleId: settlementScheduleId(lifecycleQueue),
    workflowType: SETTLE_WORKFLOW,
    workflowId: `settlements:${lifecycleQueue}`,
    taskQueue: lifecycleQueue,
    everyMs: 24 * HOUR_MS,
    offsetMs: 2 * HOUR_MS,
    longestMs: 12 * HOUR_MS,
  });
}
