import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation } from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback';
import type { SentBy } from '../domain/lifecycle';
import { LIFECYCLE_QUEUE } from '../domain/task-queues';
import { isInFlight, LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import { inTime } from '../temporal/in-time';
import { nextRun } from '../temporal/start';
import { CliFailure } from './failure';
import { findResource, type WorkflowDeps } from './resources';
import { updateFailure } from './temporal-call';

/** Time for an answer: the workflow may ask the bank meanwhile. */
const ACT_TIMEOUT_MS = 20_000;

export interface ActDeps extends WorkflowDeps {
  stores: ResourceStores;
  /** Time for an answer; shorter in tests. */
  timeoutMs?: number;
}

/** An operator's act, as the update of the workflow takes it. */
export interface Act {
  what: string;
  operator: string;
  reason: string;
  /** Length of a snooze. */
  hours?: number | undefined;
  /** Minor units that really moved. */
  amount?: number | undefined;
  /** Second operator. */
  approved_by?: string | undefined;
  /** System user who sends it. */
  by?: SentBy | undefined;
}

/** State of the resource after the act. */
export interface Acted {
  status: string;
  version: number;
  /** Answer of the bank to `resubmit`. */
  bank?: string;
}

/**
 * Sends an operator's act to the workflow, which is started again where it has ended or was
 * terminated. The workflow decides, and keeps the act in the audit trail.
 * @throws CliFailure `…_not_found`; `wrong_state` or `invalid_request` in the workflow's words;
 *   `outcome_unknown` without an answer in time; `temporal_unavailable`
 */
export async function actOn(
  deps: ActDeps,
  kind: CallbackResource,
  id: string,
  { what, ...act }: Act,
): Promise<Acted> {
  const resource = await findResource(deps.stores, kind, id);
  if (!LIFECYCLES[kind].actsWhenEnded.includes(what)) {
    if (!isInFlight(kind, resource.status)) {
      const message = `The ${kind} is ${resource.status}; a final state is never left.`;
      throw new CliFailure('wrong_state', message);
    }
    // A workflow that starts again refuses acts until it has loaded its state: `open` waits for
    // that, under a fresh update id, since a known one would bring back an ended run's answer.
    await update(deps, kind, resource, 'open', []);
  }
  return await update(deps, kind, resource, what, [act]);
}

async function update(
  { temporal, lifecycleQueue = LIFECYCLE_QUEUE, timeoutMs = ACT_TIMEOUT_MS }: ActDeps,
  kind: CallbackResource,
  resource: Resource,
  name: string,
  args: object[],
): Promise<Acted> {
  const start = new WithStartWorkflowOperation(LIFECYCLES[kind].workflowType, {
    ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  const call = () =>
    temporal.workflow.executeUpdateWithStart<Workflow, Acted, object[]>(name, {
      args,
      startWorkflowOperation: start,
    });
  const late =
    `The workflow of the ${kind} gave no answer within ${timeoutMs / 1_000} seconds, so the ` +
    `outcome is unknown: \`${kind} show ${resource._id}\` tells what became of it.`;
  return await inTime(
    temporal,
    async () => {
      try {
        return await call();
      } catch (error) {
        throw updateFailure(error, late);
      }
    },
    timeoutMs,
  );
}
