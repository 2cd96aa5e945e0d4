import type { Client } from '@temporalio/client';
import { type ClockStart, type ClockTarget, clockWorkflowId } from '../domain/merchants/clock';
import { environmentQueue } from '../domain/task-queues';
import { withinLimit } from './deadline';
import { updateWithStart } from './start';

export interface ClockCaller {
  client: Client;
  lifecycleQueue: string;
}

/** @throws Refusal 409 `clock_advancing`; 503 `temporarily_unavailable`: outcome unknown */
export const startAdvance = (caller: ClockCaller, clock: ClockStart, target: ClockTarget) =>
  updateClock(caller, clock, 'advance', target);

/** @throws Refusal 503 `temporarily_unavailable`: outcome unknown */
export const stopAdvance = (caller: ClockCaller, clock: ClockStart) =>
  updateClock(caller, clock, 'stop', {});

async function updateClock(
  { client, lifecycleQueue }: ClockCaller,
  clock: ClockStart,
  update: 'advance' | 'stop',
  argument: ClockTarget | object,
): Promise<void> {
  await withinLimit(client, () =>
    updateWithStart(client, 'accountClock', update, argument, {
      workflowId: clockWorkflowId(clock.account_id),
      taskQueue: environmentQueue(lifecycleQueue, false),
      args: [clock],
      staticSummary: 'clock of a sandbox account',
    }),
  );
}
