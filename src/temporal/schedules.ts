import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import { SETTLE_WORKFLOW } from '../domain/crypto/settle';
import { type Env, isLive } from '../domain/environment';
import { AUDIT_WORKFLOW } from '../domain/operators/audit-log';
import { LEDGER_CHECK_WORKFLOW } from '../domain/operators/ledger-check';
import { RETENTION_WORKFLOW } from '../domain/operators/retention';
import { SEARCH_KEYS } from '../domain/search-attributes';
import { environmentQueue } from '../domain/task-queues';

const CALL_TIMEOUT_MS = 5_000;

const HOUR_MS = 3_600_000;

/** Its workers run the schedules of both, so that a flood in the sandbox delays none. */
export const SCHEDULE_ENVIRONMENT: Env = 'live';

/**
 * Schedules that run one at a time per installation. `offsetMs` counts from midnight UTC. `longestMs`
 * ends a stuck run, which would prevent every later one. `catchUpMs` is how late one starts after an
 * outage: a daily one on the same day.
 */
const SCHEDULES = {
  audit: {
    workflowType: AUDIT_WORKFLOW,
    everyMs: HOUR_MS,
    offsetMs: 0,
    longestMs: 3 * HOUR_MS,
    catchUpMs: HOUR_MS / 6,
  },
  ledger: {
    workflowType: LEDGER_CHECK_WORKFLOW,
    everyMs: 6 * HOUR_MS,
    offsetMs: HOUR_MS / 2,
    longestMs: 48 * HOUR_MS,
    catchUpMs: 3 * HOUR_MS,
  },
  settlements: {
    workflowType: SETTLE_WORKFLOW,
    everyMs: 24 * HOUR_MS,
    offsetMs: 2 * HOUR_MS,
    longestMs: 12 * HOUR_MS,
    catchUpMs: 20 * HOUR_MS,
  },
  retention: {
    workflowType: RETENTION_WORKFLOW,
    everyMs: 24 * HOUR_MS,
    offsetMs: 3 * HOUR_MS,
    longestMs: 20 * HOUR_MS,
    catchUpMs: 20 * HOUR_MS,
  },
} as const;

export type ScheduleName = keyof typeof SCHEDULES;
export const SCHEDULE_NAMES: readonly ScheduleName[] = [
  'audit',
  'ledger',
  'settlements',
  'retention',
];

export function getScheduleId(name: ScheduleName, lifecycleQueue: string): string {
  return `service-${name}:${lifecycleQueue}`;
}

/** Leaves a pause as it is. Several workers may call it at once. @throws Error of Temporal */
export async function ensureSchedule(
  temporal: Client,
  name: ScheduleName,
  lifecycleQueue: string,
): Promise<'made' | 'changed' | 'kept'> {
  return await temporal.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
    const scheduleId = getScheduleId(name, lifecycleQueue);
    const schedule = buildSchedule(name, lifecycleQueue);
    try {
      await temporal.schedule.create({ scheduleId, ...schedule });
      return 'made';
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
    }
    const handle = temporal.schedule.getHandle(scheduleId);
    if (isCurrent(await handle.describe(), schedule)) return 'kept';
    await handle.update(({ state }) => ({ ...schedule, state }));
    return 'changed';
  });
}

function buildSchedule(name: ScheduleName, lifecycleQueue: string) {
  const { workflowType, everyMs, offsetMs, longestMs, catchUpMs } = SCHEDULES[name];
  return {
    spec: { intervals: [{ every: everyMs, offset: offsetMs }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: catchUpMs },
    action: {
      type: 'startWorkflow' as const,
      workflowType,
      workflowId: `${name}:${lifecycleQueue}`,
      taskQueue: environmentQueue(lifecycleQueue, isLive(SCHEDULE_ENVIRONMENT)),
      args: [],
      workflowExecutionTimeout: longestMs,
      typedSearchAttributes: [{ key: SEARCH_KEYS.resource, value: workflowType }],
    },
  };
}

function isCurrent(
  { spec, policies, action }: ScheduleDescription,
  wanted: ReturnType<typeof buildSchedule>,
): boolean {
  const [interval, ...more] = spec.intervals ?? [];
  const [{ every, offset } = {}] = wanted.spec.intervals;
  return (
    more.length === 0 &&
    interval?.every === every &&
    (interval?.offset ?? 0) === offset &&
    policies.overlap === wanted.policies.overlap &&
    policies.catchupWindow === wanted.policies.catchupWindow &&
    action.workflowType === wanted.action.workflowType &&
    action.workflowExecutionTimeout === wanted.action.workflowExecutionTimeout &&
    action.taskQueue === wanted.action.taskQueue
  );
}
