import { type Client, WorkflowNotFoundError } from '@temporalio/client';

/** Generous, as a late answer ends a walk over thousands; that the server is there is known by then. */
const CALL_TIMEOUT_MS = 15_000;

/** Status of a workflow's newest run, such as `RUNNING`; `NOT_FOUND` when the server knows none. */
export async function statusOf(temporal: Client, workflowId: string): Promise<string> {
  try {
    const handle = temporal.workflow.getHandle(workflowId);
    const deadline = Date.now() + CALL_TIMEOUT_MS;
    return (await temporal.withDeadline(deadline, () => handle.describe())).status.name;
  } catch (error) {
    // Never started, or closed so long ago that the server has forgotten it.
    if (error instanceof WorkflowNotFoundError) return 'NOT_FOUND';
    throw error;
  }
}
