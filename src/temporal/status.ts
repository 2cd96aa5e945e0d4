import { type Client, WorkflowNotFoundError } from '@temporalio/client';

/** Long, because a timeout would end a walk over thousands of workflows. */
const CALL_TIMEOUT_MS = 15_000;

interface NewestRun {
  /** Such as `RUNNING`; `NOT_FOUND` if there is none. */
  status: string;
  runId?: string;
}

export async function getWorkflowStatus(temporal: Client, workflowId: string): Promise<string> {
  return (await getNewestRun(temporal, workflowId)).status;
}

export async function getNewestRun(temporal: Client, workflowId: string): Promise<NewestRun> {
  try {
    const handle = temporal.workflow.getHandle(workflowId);
    const deadline = Date.now() + CALL_TIMEOUT_MS;
    const { status, runId } = await temporal.withDeadline(deadline, () => handle.describe());
    return { status: status.name, runId };
  } catch (error) {
    // Never started, or the server's retention period has ended.
    if (error instanceof WorkflowNotFoundError) return { status: 'NOT_FOUND' };
    throw error;
  }
}
