import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import { AUDIT_WORKFLOW } from '../domain/audit';
import { SEARCH_KEYS } from '../domain/search-attributes';

const CALL_TIMEOUT_MS = 5_000;
const HOUR_MS = 3_600_000;
const CATCHUP_MS = 600_000;

/** Id of the schedule; each lifecycle queue has its own. */
export function auditScheduleId(lifecycleQueue: string): string {
  return `service-audit:${lifecycleQueue}`;
}

/**
 * Makes the schedule that starts an audit every hour, or brings it up to date; a pause is kept.
 * Several workers may do it at once.
 * @throws Error of Temporal, as without the permission to make schedules
 */
export async function ensureAuditSchedule(
  temporal: Client,
  lifecycleQueue: string,
): Promise<'made' | 'changed' | 'kept'> {
  return await temporal.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
    const scheduleId = auditScheduleId(lifecycleQueue);
    const wanted = auditSchedule(lifecycleQueue);
    try {
      await temporal.schedule.create({ scheduleId, ...wanted });
      return 'made';
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
    const handle = temporal.schedule.getHandle(scheduleId);
    if (isCurrent(await handle.describe(), lifecycleQueue)) return 'kept';
    await handle.update(({ state }) => ({ ...wanted, state }));
    return 'changed';
  });
}

function auditSchedule(taskQueue: string) {
  return {
    spec: { intervals: [{ every: HOUR_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_MS },
    action: {
      type: 'startWorkflow' as const,
      workflowType: AUDIT_WORKFLOW,
      workflowId: `audit:${taskQueue}`,
      taskQueue,
      args: [],
      // A stuck one would keep every later one from starting.
      workflowExecutionTimeout: 3 * HOUR_MS,
      typedSearchAttributes: [{ key: SEARCH_KEYS.resource, value: AUDIT_WORKFLOW }],
    },
  };
}

function isCurrent({ spec, policies, action }: ScheduleDescription, taskQueue: string): boolean {
  return (
    spec.intervals?.length === 1 &&
    spec.intervals[0]?.every === HOUR_MS &&
    policies.overlap === ScheduleOverlapPolicy.SKIP &&
    policies.catchupWindow === CATCHUP_MS &&
    action.workflowType === AUDIT_WORKFLOW &&
    action.taskQueue === taskQueue
  );
}
