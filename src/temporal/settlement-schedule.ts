import type { Client } from '@temporalio/client';
import { SETTLE_WORKFLOW } from '../domain/crypto/settle';
import { ensureSchedule } from './schedules';

const HOUR_MS = 3_600_000;

/** Each lifecycle queue has its schedule. */
export function settlementScheduleId(lifecycleQueue: string): string {
  return `service-settlements:${lifecycleQueue}`;
}

/**
 * Creates or updates the schedule that pays out crypto balances at 02:00 UTC; a pause is kept.
 * @throws Error of Temporal, for example without the permission to create schedules
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
