import { type Client, WorkflowNotFoundError } from '@temporalio/client';
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

/** Bounds the length of a query. */
const LISTED_AT_ONCE = 100;

/** The list of workflows lags by seconds. */
export async function listRunning(
  { workflow }: Client,
  workflowIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const running = new Set<string>();
  for await (const ids of inBatches(workflowIds, LISTED_AT_ONCE)) {
    const query = `ExecutionStatus = 'Running' AND WorkflowId IN ('${ids.join(`', '`)}')`;
    for await (const { workflowId } of workflow.list({ query })) running.add(workflowId);
  }
  return running;
}
