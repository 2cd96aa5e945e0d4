import type { WorkerOptions } from '@temporalio/worker';
import { z } from 'zod';
import { parseEnvironment } from '../src/config';
import { defined } from '../src/domain/defined';
import { MONTHS_MAX } from '../src/domain/retention';

const count = z.coerce.number().int();

/** Bounds of what a worker process takes on at once; most count for each of its queues. */
export const Environment = z.object({
  WORKFLOW_SLOTS: count.min(2).default(40),
  ACTIVITY_SLOTS: count.min(1).default(50),
  DELIVERY_SLOTS: count.min(1).default(200),
  CACHED_WORKFLOWS: count.min(0).default(1_000),
  POLLERS_MAX: count.min(10).default(10),
  STICKY_TIMEOUT_MS: count.min(100).default(5_000),
  RECIPIENT_DETAILS_MONTHS: count.min(1).max(MONTHS_MAX).default(13),
});

export type Tuning = z.infer<typeof Environment>;

/** @throws Error naming every variable at fault. */
export function readTuning(env: NodeJS.ProcessEnv = process.env): Tuning {
  return parseEnvironment(Environment, env);
}

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
export function tunedOptions(tuning: Tuning) {
  return {
    shutdownGraceTime: '12s',
    shutdownForceTime: '20s',
    ...PATIENCE,
    // Long enough that a busy worker keeps its workflows, which another would have to replay.
    stickyQueueScheduleToStartTimeout: tuning.STICKY_TIMEOUT_MS,
    maxConcurrentWorkflowTaskExecutions: tuning.WORKFLOW_SLOTS,
    maxCachedWorkflows: tuning.CACHED_WORKFLOWS,
    ...defined({
      workflowTaskPollerBehavior: pollers(tuning.POLLERS_MAX),
      activityTaskPollerBehavior: pollers(tuning.POLLERS_MAX),
    }),
  } satisfies Partial<WorkerOptions>;
}

/** Most calls that are open by the SDK's own rule. */
const POLLERS_FIXED = 10;
const POLLERS_MIN = 2;

/** More calls than usual are made only while the server's backlog asks for them. */
function pollers(maximum: number) {
  if (maximum <= POLLERS_FIXED) return undefined;
  return { type: 'autoscaling' as const, minimum: POLLERS_MIN, initial: POLLERS_FIXED, maximum };
}
