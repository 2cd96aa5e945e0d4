import { type Client, WithStartWorkflowOperation, WorkflowNotFoundError } from '@temporalio/client';
import type { Workflow } from '@temporalio/common';

/** Repeated where the workflow ends at this moment. */
const TRIES = 3;

type Start = ConstructorParameters<typeof WithStartWorkflowOperation<Workflow>>[1];

/** Waits for the update of a workflow that runs, or that starts with it. */
export async function updateWithStart<Argument>(
  client: Client,
  type: string,
  update: string,
  argument: Argument,
  start: Omit<Start, 'workflowIdConflictPolicy'>,
): Promise<void> {
  for (let left = TRIES; ; left -= 1) {
    const options = { ...start, workflowIdConflictPolicy: 'USE_EXISTING' } as const;
    try {
      await client.workflow.executeUpdateWithStart<Workflow, void, [Argument]>(update, {
        args: [argument],
        startWorkflowOperation: new WithStartWorkflowOperation(type, options),
      });
      return;
    } catch (error) {
      if (left <= 1 || !(error instanceof WorkflowNotFoundError)) throw error;
    }
  }
}
