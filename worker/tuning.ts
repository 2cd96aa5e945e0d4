import type { WorkerOptions } from '@temporalio/worker';

/** Activities of payments, refunds and payouts that a worker executes at once, on each queue. */
export const ACTIVITY_SLOTS = 50;

/** Webhooks that a worker posts at once, on each queue. */
export const DELIVERY_SLOTS = 200;

/** Half of them may wait for first attempts; a task that waits costs no thread. */
export const DELIVERY_TASK_SLOTS = DELIVERY_SLOTS / 2;

/**
 * Time that a workflow's code may take at a stretch; the SDK knows the option, though not its type.
 * To end code that works on thousands of signals would end the process, and the next one after it.
 */
const PATIENCE = { isolateExecutionTimeout: '60s' };

/**
 * Options of the worker of any queue. An attempt of a webhook, of ten seconds at most, ends within
 * the grace; what launches the process waits longer than the force.
 * @see docs/operations.md#scaling
 */
export const WORKER_OPTIONS = {
  shutdownGraceTime: '12s',
  shutdownForceTime: '20s',
  ...PATIENCE,
  // Long enough that a busy worker keeps its workflows, which another would have to replay.
  stickyQueueScheduleToStartTimeout: '5s',
  maxConcurrentWorkflowTaskExecutions: 40,
  maxCachedWorkflows: 1_000,
} satisfies Partial<WorkerOptions>;
