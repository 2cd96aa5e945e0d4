import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';

const POLL_MS = 100;
const QUIET_MS_MAX = 20_000;

/**
 * Waits until no workflow of these queues runs, since work after a payment's last webhook is that
 * payment's own cost and must not fall on the next run.
 * @throws Error when some still run after 20 s.
 */
export async function untilQuiet(
  temporal: Client,
  taskQueues: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const queues = taskQueues.map((queue) => `'${queue}'`).join(', ');
  const query = `ExecutionStatus = 'Running' AND TaskQueue IN (${queues})`;
  const deadline = Date.now() + QUIET_MS_MAX;
  for (;;) {
    const { count } = await temporal.workflow.count(query);
    if (count === 0) return;
    if (Date.now() > deadline) throw new Error(`${count} workflows of ${queues} do not end.`);
    await sleep(POLL_MS, undefined, { signal });
  }
}
