import { randomUUID } from 'node:crypto';
import {
  type Client,
  isGrpcDeadlineError,
  WithStartWorkflowOperation,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure, type Workflow } from '@temporalio/common';
import type { CallbackResource } from '../../domain/callback/callback';
import { ServiceError } from '../../domain/errors';
import type { ActSender } from '../../domain/lifecycle';
import { LIFECYCLE_QUEUE } from '../../domain/task-queues';
import { isInFlight, LIFECYCLES, type Resource, type ResourceStores } from '../../lifecycles';
import { withTimeout } from '../../temporal/in-time';
import { nextRun } from '../../temporal/start';
import { assertApproved } from '../balances/fund';
import { findResource } from './resource';

/** The workflow may call the bank before it answers. */
const ACT_TIMEOUT_MS = 20_000;

export interface ActDeps {
  temporal: Client;
  /** Task queue; tests have their own. */
  lifecycleQueue?: string;
  stores: ResourceStores;
  /** Minor units above which a second operator approves `mark_settled` on live; no limit when undefined. */
  creditLimit?: number;
  /** Shorter in tests. */
  timeoutMs?: number;
}

export interface Act {
  what: string;
  operator: string;
  reason: string;
  hours?: number | undefined;
  /** Minor units that the bank really transferred. */
  amount?: number | undefined;
  /** Reason to acknowledge, where the operator saw one. */
  attention?: string | undefined;
  /** Second operator. */
  approved_by?: string | undefined;
  /** Whether the operator of `mark_failed` knows it from the bank, which is not asked. */
  bank_confirmed_not_executed?: boolean | undefined;
  /** System user who runs the command. */
  by?: ActSender | undefined;
}

export interface ActResult {
  status: string;
  version: number;
  /** Answer of the bank to `resubmit`. */
  bank?: string;
}

/**
 * Sends an operator's act to the workflow, and starts it again if it has ended. The workflow
 * decides, and records the act in the audit trail.
 * @throws ServiceError `…_not_found`; `approval_required`; `wrong_state`, `invalid_request`,
 *   `held_by_bank` or `bank_unreachable` with the message of the workflow; `outcome_unknown` after
 *   the timeout; `temporal_unavailable`
 */
export async function actOn(
  deps: ActDeps,
  kind: CallbackResource,
  id: string,
  { what, ...act }: Act,
): Promise<ActResult> {
  const resource = await findResource(deps.stores, kind, id);
  if (what === 'mark_settled' && deps.creditLimit !== undefined) {
    const { livemode, currency } = resource;
    const { amount = Number(resource.amount), operator, approved_by } = act;
    const request = { livemode, currency, amount, operator, approved_by };
    assertApproved(deps.creditLimit, request);
  }
  if (!LIFECYCLES[kind].actsWhenEnded.includes(what)) {
    if (!isInFlight(kind, resource.status)) {
      const message = `The ${kind} is ${resource.status}; a final state is never left.`;
      throw new ServiceError('wrong_state', message);
    }
    // `open` waits until a restarted workflow has loaded its state, with a new update id: a known
    // id would return the answer of the earlier run.
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
): Promise<ActResult> {
  const start = new WithStartWorkflowOperation(LIFECYCLES[kind].workflowType, {
    ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  const call = () =>
    temporal.workflow.executeUpdateWithStart<Workflow, ActResult, object[]>(name, {
      args,
      startWorkflowOperation: start,
    });
  const timeoutMessage =
    `The workflow of the ${kind} gave no answer within ${timeoutMs / 1_000} seconds, so the ` +
    `outcome is unknown: \`${kind} show ${resource._id}\` shows it.`;
  return await withTimeout(
    temporal,
    async () => {
      try {
        return await call();
      } catch (error) {
        throw toServiceError(error, timeoutMessage);
      }
    },
    timeoutMs,
  );
}

function toServiceError(error: unknown, timeoutMessage: string): unknown {
  if (error instanceof WorkflowUpdateFailedError) {
    const { cause } = error;
    const code = cause instanceof ApplicationFailure ? cause.type : undefined;
    return new ServiceError(code ?? 'update_failed', cause?.message ?? error.message);
  }
  const isLate =
    error instanceof WorkflowUpdateRPCTimeoutOrCancelledError || isGrpcDeadlineError(error);
  return isLate ? new ServiceError('outcome_unknown', timeoutMessage) : error;
}
