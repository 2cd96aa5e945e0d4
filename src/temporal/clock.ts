import { type Client, WithStartWorkflowOperation, WorkflowNotFoundError } from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import { type ClockStart, type ClockTarget, clockWorkflowId } from '../domain/account/clock';
import { environmentQueue } from '../domain/task-queues';
import { withinLimit } from './within-limit';

export interface ClockCaller {
  client: Client;
  lifecycleQueue: string;
}

/** Repeated where the workflow ends at this moment. */
const TRIES = 3;

/** @throws Refusal 409 `clock_advancing`; 503 `temporarily_unavailable`: outcome unknown */
export async function startAdvance(
  { client, lifecycleQueue }: ClockCaller,
  clock: ClockStart,
  target: ClockTarget,
): Promise<void> {
  const start = () =>
    new WithStartWorkflowOperation('accountClock', {
      workflowId: clockWorkflowId(clock.account_id),
      taskQueue: environmentQueue(lifecycleQueue, false),
      args: [clock],
      workflowIdConflictPolicy: 'USE_EXISTING',
      staticSummary: 'clock of a sandbox account',
    });
  await withinLimit(client, async () => {
    for (let left = TRIES; ; left -= 1) {
      try {
        await client.workflow.executeUpdateWithStart<Workflow, void, [ClockTarget]>('advance', {
          args: [target],
          startWorkflowOperation: start(),
        });
        return;
      } catch (error) {
        if (left <= 1 || !(error instanceof WorkflowNotFoundError)) throw error;
      }
    }
  });
}
