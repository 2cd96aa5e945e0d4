import type { WorkerOptions } from '@temporalio/worker';

export const ACTIVITY_SLOTS = 50;

export const DELIVERY_SLOTS = 200;

/** Half of them may wait for first attempts. */
export const DELIVERY_TASK_SLOTS = DELIVERY_SLOTS / 2;

/**
 * Few, since tasks that share a starved processor would all time out, and the same ones come again:
 * others wait in Temporal, where no time limit runs.
 */
const LIFECYCLE_TASK_SLOTS = 12;

/**
 * The SDK's types lack this limit. A lower one would end the process again and again on thousands
 * of signals.
 */
const PATIENCE = { isolateExecutionTimeout: '60s' };

/**
 * Lets a webhook attempt, of ten seconds at most, end within the grace.
 * @see docs/operations.md#scaling
 */
export const WORKER_OPTIONS = {
  shutdownGraceTime: '12s',
  shutdownForceTime: '20s',
  ...PATIENCE,
  // Another worker would have to replay the workflows of a busy one.
  stickyQueueScheduleToStartTimeout: '5s',
  maxConcurrentWorkflowTaskExecutions: LIFECYCLE_TASK_SLOTS,
  maxCachedWorkflows: 1_000,
  // By default 80 % of the heartbeat timeout: a killed worker's later progress is repeated.
  maxHeartbeatThrottleInterval: '10s',
} satisfies Partial<WorkerOptions>;
