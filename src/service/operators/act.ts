import { randomUUID } from 'node:crypto';
import {
  type Client,
  isGrpcDeadlineError,
  WithStartWorkflowOperation,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure, type Workflow } from '@temporalio/common';
import type { VerifiedOperator } from '../../domain/account/operator';
import { type ApprovalRequired, isApprovalRequired, needsKey } from '../../domain/approval';

import type { CallbackResource } from '../../domain/callback/callback';
import { ServiceError } from '../../domain/errors';
import type { Outcome } from '../../domain/movement/movement';
import type { ActSender } from '../../domain/operator-act';
import { LIFECYCLE_QUEUE } from '../../domain/task-queues';
import { isInFlight, LIFECYCLES, type Resource, type ResourceStores } from '../../lifecycles';
import { withTimeout } from '../../temporal/deadline';
import { assertNotBehind } from '../../temporal/reopening';
import { nextRun } from '../../temporal/start';
import type { WriteDeps } from '../deps';
import { confirmOwn } from './approvals/decide';
import { findResource } from './resource';

/** The workflow may call the bank before it responds, and a busy Temporal takes its time. */
const ACT_TIMEOUT_MS = 60_000;

export interface ActDeps {
  temporal: Client;
  lifecycleQueue?: string;
  stores: ResourceStores;
  timeoutMs?: number;
}

export interface Act {
  what: string;
  operator: string;
  reason: string;
  hours?: number | undefined;
  /** Minor units that the bank really transferred. */
  amount?: number | undefined;
  /** Operator's id of a chargeback: a repeat posts nothing. */
  operation_id?: string | undefined;
  /** Won dispute, and minor units of its fee that came back. */
  dispute_id?: string | undefined;
  fee?: number | undefined;
  /** Movement that the act takes or decides about. */
  movement?: string | undefined;
  /** Says who has what is in suspense, or bears it. */
  as?: Outcome | undefined;
  /** Seen by the operator, of `acknowledge`. */
  attention?: string | undefined;
  /** Deposit to confirm, or transaction that sent it back. */
  transaction_id?: string | undefined;
  /** Address to which it was sent back. */
  address?: string | undefined;
  /** Second operator. */
  approved_by?: string | undefined;
  /** Live only. */
  approval_id?: string | undefined;
  /** The operator of `mark_failed` knows it from the bank, which is not queried. */
  bank_confirmed_not_executed?: boolean | undefined;
  /** System user. */
  by?: ActSender | undefined;
}

export interface ActResult {
  status: string;
  version: number;
  /** Response of the bank to `resubmit`. */
  bank?: string;
}

/**
 * Sends an act to the workflow, and starts it again if it has ended. The workflow decides and
 * records the act; above the limit it requests an approval instead.
 * @throws ServiceError `…_not_found`; `record_behind`; `wrong_state`, `invalid_request`,
 * `held_by_bank` or `bank_unreachable` with the message of the workflow; `outcome_unknown` after
 * the timeout; `temporal_unavailable`
 */
export async function actOn(
  deps: ActDeps,
  kind: CallbackResource,
  id: string,
  { what, ...act }: Act,
): Promise<ActResult | ApprovalRequired> {
  const resource = await findResource(deps.stores, kind, id);
  const refusal = findRefusal(kind, what, resource.status);
  if (refusal !== undefined) throw refusal;
  if (!LIFECYCLES[kind].actsWhenEnded.includes(what)) {
    // `open` waits until a restarted workflow has loaded its state. Its update id is new: a known
    // one would return the earlier run's result.
    await update(deps, kind, resource, 'open', []);
  }
  return await update(deps, kind, resource, what, [act]);
}

/** Explains why no workflow needs to decide. @returns undefined where one does */
export function findRefusal(
  kind: CallbackResource,
  what: string,
  status: string,
): ServiceError | undefined {
  if (LIFECYCLES[kind].actsWhenEnded.includes(what) || isInFlight(kind, status)) return undefined;
  const message = `The ${kind} is ${status}; a final state is never left.`;
  return new ServiceError('wrong_state', message);
}

async function update(
  { temporal, stores, lifecycleQueue = LIFECYCLE_QUEUE, timeoutMs = ACT_TIMEOUT_MS }: ActDeps,
  kind: CallbackResource,
  resource: Resource,
  name: string,
  args: object[],
): Promise<ActResult | ApprovalRequired> {
  await withTimeout(temporal, () => assertNotBehind({ temporal, stores }, kind, resource));
  const start = new WithStartWorkflowOperation(LIFECYCLES[kind].workflowType, {
    ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  const call = () =>
    temporal.workflow
      .executeUpdateWithStart<Workflow, ActResult | ApprovalRequired, object[]>(name, {
        args,
        startWorkflowOperation: start,
      })
      .catch((error: unknown) => {
        if (error instanceof WorkflowUpdateFailedError) {
          const { cause } = error;
          const code = cause instanceof ApplicationFailure ? cause.type : undefined;
          throw new ServiceError(code ?? 'update_failed', cause?.message ?? error.message);
        }
        const isLate =
          error instanceof WorkflowUpdateRPCTimeoutOrCancelledError || isGrpcDeadlineError(error);
        if (!isLate) throw error;
        const message =
          `The workflow of the ${kind} gave no answer within ${timeoutMs / 1_000} seconds, so the ` +
          `outcome is unknown: \`${kind} show ${resource._id}\` shows it.`;
        throw new ServiceError('outcome_unknown', message);
      });
  return await withTimeout(temporal, call, timeoutMs);
}

/**
 * Acts that move live money need a verified operator, who confirms the request of an approval.
 * @throws ServiceError `operator_key_required`, and those of `actOn`
 */
export async function actAsOperator(
  deps: ActDeps & WriteDeps,
  kind: CallbackResource,
  id: string,
  act: Act,
  verified: VerifiedOperator | undefined,
): Promise<ActResult | ApprovalRequired> {
  const { livemode } = await findResource(deps.stores, kind, id);
  if (livemode && verified === undefined && needsKey(act.what)) {
    throw new ServiceError('operator_key_required', 'On live this needs an operator’s key.');
  }
  const answer = await actOn(deps, kind, id, act);
  if (verified !== undefined && isApprovalRequired(answer)) {
    await confirmOwn(deps, answer.approval_id, verified);
  }
  return answer;
}
