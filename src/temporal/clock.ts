import type { Client } from '@temporalio/client';
import { type ClockStart, type ClockTarget, clockWorkflowId } from '../domain/account/clock';
import { environmentQueue } from '../domain/task-queues';
import { withinLimit } from './deadline';
import { updateWithStart } from './start';

export interface ClockCaller {
  client: Client;
  lifecycleQueue: string;
}

/** @throws Refusal 409 `clock_advancing`; 503 `temporarily_unavailable`: outcome unknown */
export async function startAdvance(
  { client, lifecycleQueue }: ClockCaller,
  clock: ClockStart,
  target: ClockTarget,
): Promise<void> {
  await withinLimit(client, () =>
    updateWithStart(client, 'accountClock', 'advance', target, {
      workflowId: clockWorkflowId(clock.account_id),
      taskQueue: environmentQueue(lifecycleQueue, false),
      args: [clock],
      staticSummary: 'clock of a sandbox account',
    }),
  );
}
