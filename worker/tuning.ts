import type { WorkerOptions } from '@temporalio/worker';

/** Concurrent activities of lifecycles, on each queue. */
export const ACTIVITY_SLOTS = 50;

/** Concurrent webhook posts, on each queue. */
export const DELIVERY_SLOTS = 200;

/** Half of them may wait for first attempts; a waiting task costs no thread. */
export const DELIVERY_TASK_SLOTS = DELIVERY_SLOTS / 2;

/**
 * Time that a workflow's code may run without a pause; the SDK's types lack the option. A lower
 * limit would end the process on a task with thousands of signals, again and again.
 */
const PATIENCE = { isolateExecutionTimeout: '60s' };

/**
 * Options of the worker of any queue. A webhook attempt, of ten seconds at most, ends within the
 * grace; the launcher waits longer than the force time.
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
