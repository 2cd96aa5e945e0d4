import type { CallbackResource } from '../domain/callback';
import { environmentQueue } from '../domain/task-queues';
import type { ClaimMark } from '../keys/claim-mark';
import { LIFECYCLES, type Resource } from '../lifecycles';
import { type LabelledFacts, lifecycleLabels } from './labels';

/** Memo in which a workflow carries the mark of its claim. */
export const CLAIM_MEMO = 'claim';

/**
 * Time after which Temporal gives a task to another worker, so that a create whose worker is gone is
 * answered within its 8 s. Longer than a local activity takes; a task that needs more is given more
 * from its fourth attempt on.
 * @see docs/operations.md#ending-and-starting-processes
 */
export const TASK_MS_MAX = 4_000;

/** Options that start the workflow of a new resource. */
export function firstRun(
  kind: CallbackResource,
  id: string,
  input: LabelledFacts,
  lifecycleQueue: string,
  mark: ClaimMark | undefined,
) {
  const { workflowId, opening } = LIFECYCLES[kind];
  return {
    workflowId: workflowId(id),
    taskQueue: environmentQueue(lifecycleQueue, input.livemode),
    args: [input],
    workflowTaskTimeout: TASK_MS_MAX,
    ...(mark === undefined ? {} : { memo: { [CLAIM_MEMO]: mark } }),
    ...lifecycleLabels(kind, input, opening),
  };
}

/** Facts of a stored resource that its workflow is started and labelled with. */
export type StoredFacts = LabelledFacts & Pick<Resource, '_id' | 'status'>;

/** Options that start the workflow of a stored resource again. */
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
    ...lifecycleLabels(kind, resource, resource.status),
  };
}
