import { type Client, WorkflowNotFoundError } from '@temporalio/client';

/** Long, because a timeout would end a walk over thousands of workflows. */
const CALL_TIMEOUT_MS = 15_000;

/** Returns the status of the newest run, such as `RUNNING`; `NOT_FOUND` if there is none. */
export async function getWorkflowStatus(temporal: Client, workflowId: string): Promise<string> {
  try {
    const handle = temporal.workflow.getHandle(workflowId);
    const deadline = Date.now() + CALL_TIMEOUT_MS;
    return (await temporal.withDeadline(deadline, () => handle.describe())).status.name;
  } catch (error) {
    // Never started, or the server's retention period has ended.
    if (error instanceof WorkflowNotFoundError) return 'NOT_FOUND';
    throw error;
  }
}
