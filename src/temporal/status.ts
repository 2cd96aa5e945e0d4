import { type Client, isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import { inBatches } from '../base/batches';

/** A timeout would end a walk over thousands of workflows. */
const CALL_TIMEOUT_MS = 15_000;

interface NewestRun {
  /** Such as `RUNNING`; `NOT_FOUND` if there is none. */
  status: string;
  runId?: string;
  /** Whether the workflow decides at this moment. */
  hasTask: boolean;
  /** Those in progress, or waiting for their next try. */
  activityIds: readonly string[];
}

export async function getWorkflowStatus(temporal: Client, workflowId: string): Promise<string> {
  return (await getNewestRun(temporal, workflowId)).status;
}

export async function getNewestRun(temporal: Client, workflowId: string): Promise<NewestRun> {
  try {
    const handle = temporal.workflow.getHandle(workflowId);
    const deadline = Date.now() + CALL_TIMEOUT_MS;
    const { status, runId, raw } = await temporal.withDeadline(deadline, () => handle.describe());
    const activityIds = (raw.pendingActivities ?? []).flatMap(({ activityId }) => activityId ?? []);
    return { status: status.name, runId, hasTask: raw.pendingWorkflowTask != null, activityIds };
  } catch (error) {
    // Never started, or past the server's retention period.
    if (error instanceof WorkflowNotFoundError)
      return { status: 'NOT_FOUND', hasTask: false, activityIds: [] };
    throw error;
  }
}

/** Bounds the length of a query to 30 kB. */
const LISTED_AT_ONCE = 500;

/** The list of workflows lags by seconds. */
export async function listRunning(
  { workflow }: Client,
  workflowIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const running = new Set<string>();
  for await (const ids of inBatches(workflowIds, LISTED_AT_ONCE)) {
    const query = `ExecutionStatus = 'Running' AND WorkflowId IN ('${ids.join(`', '`)}')`;
    const pageSize = LISTED_AT_ONCE;
    for await (const { workflowId } of workflow.list({ query, pageSize })) running.add(workflowId);
  }
  return running;
}

/** Temporal's `TASK_QUEUE_TYPE`. */
const QUEUE_TYPES = { workflow: 1, activity: 2 } as const;

/** Temporal lists one that polled within five minutes; a poll lasts a minute at most. */
const POLLER_MS = 70_000;

export interface TaskQueueState {
  /** Processes that take its tasks now. */
  pollers: number;
  /** Tasks that wait, about. */
  waiting: number;
  /** Age of the oldest one, in seconds. */
  oldest_seconds: number;
}

export async function readTaskQueue(
  { workflowService }: Pick<Client, 'workflowService'>,
  { namespace, name, type }: { namespace: string; name: string; type: keyof typeof QUEUE_TYPES },
): Promise<TaskQueueState> {
  const { pollers, stats } = await workflowService.describeTaskQueue({
    ...{ namespace, taskQueue: { name }, taskQueueType: QUEUE_TYPES[type], reportStats: true },
  });
  const alive = (pollers ?? []).filter(({ lastAccessTime }) => {
    const seconds = Number(lastAccessTime?.seconds ?? 0);
    return Date.now() - seconds * 1_000 < POLLER_MS;
  });
  return {
    pollers: alive.length,
    waiting: Number(stats?.approximateBacklogCount ?? 0),
    oldest_seconds: Number(stats?.approximateBacklogAge?.seconds ?? 0),
  };
}

const NOT_FOUND = 5;

/**
 * Makes the server try an activity now, as attempt 1 of its count.
 * @param id the activity's
 * @returns whether the workflow runs and has the activity
 */
export async function retryNow(client: Client, workflowId: string, id: string): Promise<boolean> {
  const { namespace, identity } = client.options;
  try {
    await client.workflowService.resetActivity({
      ...{ namespace, identity, id },
      execution: { workflowId },
      keepPaused: true,
    });
    return true;
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) throw error;
    return false;
  }
}
