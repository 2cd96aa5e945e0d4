import { type Client, isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import { inBatches } from '../base/batches';

/** A timeout would end a walk over thousands of workflows. */
const CALL_TIMEOUT_MS = 15_000;

interface WorkerVersion {
  deploymentName: string;
  buildId: string;
}

export interface NewestRun {
  /** Such as `RUNNING`; `NOT_FOUND` if there is none. */
  status: string;
  runId?: string;
  taskQueue?: string;
  /** Version of workers whose tasks alone it is. */
  pinnedTo?: WorkerVersion | undefined;
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
    const { status, runId, taskQueue, raw } = await temporal.withDeadline(deadline, () =>
      handle.describe(),
    );
    const activityIds = (raw.pendingActivities ?? []).flatMap(({ activityId }) => activityId ?? []);
    const hasTask = raw.pendingWorkflowTask != null;
    const { behavior, deploymentVersion, versioningOverride } =
      raw.workflowExecutionInfo?.versioningInfo ?? {};
    const own = behavior === PINNED ? deploymentVersion : undefined;
    const version = versioningOverride == null ? own : versioningOverride.pinned?.version;
    const pinnedTo = readVersion(version);
    return { status: status.name, runId, taskQueue, pinnedTo, hasTask, activityIds };
  } catch (error) {
    // Never started, or past the server's retention period.
    if (error instanceof WorkflowNotFoundError)
      return { status: 'NOT_FOUND', hasTask: false, activityIds: [] };
    throw error;
  }
}

/** Temporal's `VERSIONING_BEHAVIOR_PINNED`, and its `PINNED_OVERRIDE_BEHAVIOR_PINNED`. */
const PINNED = 1;

function readVersion(
  version: { deploymentName?: string | null; buildId?: string | null } | null | undefined,
): WorkerVersion | undefined {
  const { deploymentName, buildId } = version ?? {};
  return deploymentName && buildId ? { deploymentName, buildId } : undefined;
}

/**
 * Finds out once about each version where workflows go that are pinned to it: nowhere while a worker
 * polls it, else to the current version.
 * @returns what moves a workflow, which loses nothing by it
 */
export function createRepin(
  client: Client,
  now: () => Date,
): (workflowId: string, run: NewestRun) => Promise<void> {
  const targets = new Map<string, Promise<WorkerVersion | undefined>>();
  const { workflowService } = client;
  const { namespace, identity } = client.options;
  const findTarget = async (name: string, pinnedTo: WorkerVersion) => {
    const workers = await workflowService.describeTaskQueue({
      ...{ namespace, taskQueue: { name }, taskQueueType: QUEUE_TYPES.workflow },
    });
    const isPolled = (workers.pollers ?? []).some(
      (poller) => isAlive(poller, now()) && isSame(readVersion(poller.deploymentOptions), pinnedTo),
    );
    if (isPolled) return undefined;
    const { deploymentName } = pinnedTo;
    const deployment = await workflowService.describeWorkerDeployment({
      namespace,
      deploymentName,
    });
    const { routingConfig } = deployment.workerDeploymentInfo ?? {};
    const current = readVersion(routingConfig?.currentDeploymentVersion);
    return isSame(current, pinnedTo) ? undefined : current;
  };
  return async (workflowId, { runId, taskQueue, pinnedTo }) => {
    if (taskQueue === undefined || pinnedTo === undefined) return;
    const key = JSON.stringify([taskQueue, pinnedTo]);
    const target = targets.get(key) ?? findTarget(taskQueue, pinnedTo);
    targets.set(key, target);
    const version = await target.catch((error: unknown) => {
      // Others ask again, rather than fail by this one.
      targets.delete(key);
      throw error;
    });
    if (version === undefined) return;
    await workflowService.updateWorkflowExecutionOptions({
      ...{ namespace, identity },
      workflowExecution: { workflowId, ...(runId && { runId }) },
      updateMask: { paths: ['versioning_override'] },
      // An upgrade would lose the task of an activity that was reset before.
      workflowExecutionOptions: {
        versioningOverride: { pinned: { behavior: PINNED, version } },
      },
    });
  };
}

function isSame(one: WorkerVersion | undefined, other: WorkerVersion): boolean {
  return one?.deploymentName === other.deploymentName && one.buildId === other.buildId;
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
  return {
    pollers: (pollers ?? []).filter((poller) => isAlive(poller, new Date())).length,
    waiting: Number(stats?.approximateBacklogCount ?? 0),
    oldest_seconds: Number(stats?.approximateBacklogAge?.seconds ?? 0),
  };
}

function isAlive(
  { lastAccessTime }: { lastAccessTime?: { seconds?: unknown } | null },
  now: Date,
): boolean {
  return now.getTime() - Number(lastAccessTime?.seconds ?? 0) * 1_000 < POLLER_MS;
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
