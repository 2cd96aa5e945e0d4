import { type Client, WithStartWorkflowOperation, WorkflowNotFoundError } from '@temporalio/client';
import type { Priority, Workflow } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback/callback';
import { environmentQueue } from '../domain/task-queues';
import type { RequestHashes } from '../encryption/request-fingerprint';
import { LIFECYCLES, type Resource } from '../lifecycles';
import { type LabeledFacts, lifecycleLabels } from './labels';

export const IDEMPOTENCY_MEMO = 'idempotency_record';

/**
 * Temporal then gives a lost task to another worker while the create still waits for 8 s. Lower, the
 * tasks of a starved worker would time out together, again and again.
 * @see docs/operations.md#ending-and-starting-processes
 */
const FIRST_RUN_TASK_MS_MAX = 5_000;

export function firstRun(
  kind: CallbackResource,
  id: string,
  input: LabeledFacts,
  lifecycleQueue: string,
  idempotencyMemo: RequestHashes | undefined,
) {
  const { workflowId, opening: status, openingVersion: version } = LIFECYCLES[kind];
  return {
    workflowId: workflowId(id),
    taskQueue: environmentQueue(lifecycleQueue, input.livemode),
    args: [input],
    workflowTaskTimeout: FIRST_RUN_TASK_MS_MAX,
    ...(idempotencyMemo === undefined ? {} : { memo: { [IDEMPOTENCY_MEMO]: idempotencyMemo } }),
    priority: getShare(input),
    ...lifecycleLabels(kind, input, { status, version }),
  };
}

type StoredFacts = LabeledFacts & Pick<Resource, '_id' | 'status' | 'version'>;

export function nextRun(
  kind: CallbackResource,
  resource: StoredFacts,
  lifecycleQueue: string,
  requestId: string,
) {
  const { workflowId, resume } = LIFECYCLES[kind];
  return {
    workflowId: workflowId(resource._id),
    taskQueue: environmentQueue(lifecycleQueue, resource.livemode),
    args: [resume(resource._id, requestId)],
    priority: getShare(resource),
    ...lifecycleLabels(kind, resource, resource),
  };
}

/**
 * Share of the task queues, so that one merchant's flood does not delay another's.
 * @see docs/operations.md#overload
 */
export function getShare({ account_id }: { account_id: string }): Priority {
  return { fairnessKey: account_id };
}

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
