import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import { SEARCH_KEYS } from '../domain/search-attributes';

const CALL_TIMEOUT_MS = 5_000;
const CATCHUP_MS = 600_000;

export interface ScheduledWorkflow {
  scheduleId: string;
  workflowType: string;
  workflowId: string;
  taskQueue: string;
  everyMs: number;
  /** Offset from midnight UTC. */
  offsetMs?: number;
  /** Timeout of a run: a stuck run would prevent every later one. */
  longestMs: number;
}

/**
 * Creates or updates a schedule; a pause is kept. Several workers may call it at once.
 * @throws Error of Temporal, for example without the permission to create schedules
 */
export async function ensureSchedule(
  temporal: Client,
  workflow: ScheduledWorkflow,
): Promise<'made' | 'changed' | 'kept'> {
  return await temporal.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
    const { scheduleId } = workflow;
    const schedule = buildSchedule(workflow);
    try {
      await temporal.schedule.create({ scheduleId, ...schedule });
      return 'made';
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
    const handle = temporal.schedule.getHandle(scheduleId);
    if (isCurrent(await handle.describe(), workflow)) return 'kept';
    await handle.update(({ state }) => ({ ...schedule, state }));
    return 'changed';
  });
}

function buildSchedule(workflow: ScheduledWorkflow) {
  const { workflowType, workflowId, taskQueue, everyMs, offsetMs = 0, longestMs } = workflow;
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
  { everyMs, offsetMs = 0, workflowType, taskQueue }: ScheduledWorkflow,
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
