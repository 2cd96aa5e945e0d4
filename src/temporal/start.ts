import type { Priority } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback/callback';
import { environmentQueue } from '../domain/task-queues';
import type { RequestHashes } from '../encryption/request-fingerprint';
import { LIFECYCLES, type Resource } from '../lifecycles';
import { type LabeledFacts, lifecycleLabels } from './labels';

export const IDEMPOTENCY_MEMO = 'idempotency_record';

/**
 * Temporal then gives a task to another worker, so that a create request succeeds within 8 s even
 * if its worker died. At least twice a local activity's time.
 * @see workflows/shared/persist.ts
 * @see docs/operations.md#ending-and-starting-processes
 */
export const TASK_MS_MAX = 4_000;

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
    workflowTaskTimeout: TASK_MS_MAX,
    ...(idempotencyMemo === undefined ? {} : { memo: { [IDEMPOTENCY_MEMO]: idempotencyMemo } }),
    priority: getShare(input),
    ...lifecycleLabels(kind, input, { status, version }),
  };
}

export type StoredFacts = LabeledFacts & Pick<Resource, '_id' | 'status' | 'version'>;

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
    workflowTaskTimeout: TASK_MS_MAX,
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
