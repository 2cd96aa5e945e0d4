import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import { SEARCH_KEYS } from '../domain/search-attributes';

const CALL_TIMEOUT_MS = 5_000;
const CATCHUP_MS = 600_000;

/** Workflow that a schedule starts, one at a time. */
export interface Scheduled {
  scheduleId: string;
  workflowType: string;
  workflowId: string;
  taskQueue: string;
  everyMs: number;
  /** Time of the first start behind midnight, UTC; each interval counts from it. */
  offsetMs?: number;
  /** Longest life of a run: a stuck one would keep every later one from starting. */
  longestMs: number;
}

/**
 * Makes a schedule, or brings it up to date; a pause is kept. Several workers may do it at once.
 * @throws Error of Temporal, as without the permission to make schedules
 */
export async function ensureSchedule(
  temporal: Client,
  scheduled: Scheduled,
): Promise<'made' | 'changed' | 'kept'> {
  return await temporal.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
    const { scheduleId } = scheduled;
    const wanted = scheduleOf(scheduled);
    try {
      await temporal.schedule.create({ scheduleId, ...wanted });
      return 'made';
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
    const handle = temporal.schedule.getHandle(scheduleId);
    if (isCurrent(await handle.describe(), scheduled)) return 'kept';
    await handle.update(({ state }) => ({ ...wanted, state }));
    return 'changed';
  });
}

function scheduleOf(scheduled: Scheduled) {
  const { workflowType, workflowId, taskQueue, everyMs, offsetMs = 0, longestMs } = scheduled;
  return {
    spec: { intervals: [{ every: everyMs, offset: offsetMs }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: CATCHUP_MS },
    action: {
      type: 'startWorkflow' as const,
      workflowType,
      workflowId,
      taskQueue,
      args: [],
      workflowExecutionTimeout: longestMs,
      typedSearchAttributes: [{ key: SEARCH_KEYS.resource, value: workflowType }],
    },
  };
}

function isCurrent(
  { spec, policies, action }: ScheduleDescription,
  { everyMs, offsetMs = 0, workflowType, taskQueue }: Scheduled,
): boolean {
  const [interval, ...more] = spec.intervals ?? [];
  return (
    more.length === 0 &&
    interval?.every === everyMs &&
    (interval.offset ?? 0) === offsetMs &&
    policies.overlap === ScheduleOverlapPolicy.SKIP &&
    policies.catchupWindow === CATCHUP_MS &&
    action.workflowType === workflowType &&
    action.taskQueue === taskQueue
  );
}
