import { randomUUID } from 'node:crypto';
import {
  type Client,
  isGrpcDeadlineError,
  isGrpcServiceError,
  WithStartWorkflowOperation,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure, type Workflow } from '@temporalio/common';
import type { CallbackResource } from '../../domain/banks/callback';
import type { Outcome as MovementOutcome } from '../../domain/banks/movement';
import { ServiceError } from '../../domain/errors';
import {
  type ApprovalRequired,
  type Credited,
  isApprovalRequired,
  mayCredit,
  needsKey,
  requireApproval,
} from '../../domain/operators/approval';
import type { ActSender, VerifiedOperator } from '../../domain/operators/operator-act';
import { buildWorkflowQuery, LIFECYCLE_QUEUE, listLifecycleQueues } from '../../domain/task-queues';
import { isInFlight, LIFECYCLES, type Resource, type ResourceStores } from '../../lifecycles';
import type { PlannedAct } from '../../store/approvals';
import { withTimeout } from '../../temporal/deadline';
import { assertNotBehind, nextRun } from '../../temporal/start';
import type { WriteDeps } from '../access';
import { confirmOwn } from './approvals/decide';
import {
  isAboveLimit,
  measureAct,
  namePlan,
  readLimits,
  requestApproval,
} from './approvals/request';
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
  as?: MovementOutcome | undefined;
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
function findRefusal(
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

/** Bounds what one wrong query changes. */
export const FOUND_MAX = 1_000;
const AT_ONCE = 8;
const UNKNOWN_MAX = 8;
const PAGE = 100;
/** A page of a busy Temporal may take seconds. */
const LIST_MS_MAX = 60_000;
const INVALID_ARGUMENT = 3;

export interface QueryResult {
  id: string;
  /** Null if MongoDB does not have it. */
  resource: Resource | null;
  /** Why no act is sent to it; null where its workflow decides. */
  refusal: ServiceError | null;
}

interface FindDeps {
  temporal: Client;
  stores: ResourceStores;
  lifecycleQueue: string;
}

/**
 * Finds resources by a query of Temporal's list of workflows, which lags by seconds, in the order
 * of their ids.
 * @throws ServiceError `invalid_query`; `too_many` above the greatest number
 */
export async function findMany(
  deps: FindDeps,
  kind: CallbackResource,
  what: string,
  query: string,
  max = FOUND_MAX,
): Promise<QueryResult[]> {
  const ids = await listIds(deps, kind, query, max);
  const found: QueryResult[] = [];
  for (const id of ids.sort()) {
    const resource = await LIFECYCLES[kind].get(deps.stores, id);
    const refusal =
      resource === null
        ? new ServiceError(`${kind}_not_found`, `There is no ${kind} ${id}.`)
        : (findRefusal(kind, what, resource.status) ?? null);
    found.push({ id, resource, refusal });
  }
  return found;
}

async function listIds(
  { temporal, lifecycleQueue }: Omit<FindDeps, 'stores'>,
  kind: CallbackResource,
  query: string,
  max: number,
): Promise<string[]> {
  const { workflowType, workflowId } = LIFECYCLES[kind];
  const prefix = workflowId('');
  const queues = listLifecycleQueues(lifecycleQueue);
  const all = `${buildWorkflowQuery(workflowType, lifecycleQueue)} AND (${query})`;
  // One that was reopened has several runs.
  const ids = new Set<string>();
  const list = async () => {
    for await (const run of temporal.workflow.list({ query: all, pageSize: PAGE })) {
      // A query with brackets of its own may leave those around it.
      const isOurs = run.type === workflowType && queues.includes(run.taskQueue);
      if (isOurs) ids.add(run.workflowId.slice(prefix.length));
      if (ids.size <= max) continue;
      const message = `The query finds more than ${max} ${kind}s, so nothing was done: narrow it.`;
      throw new ServiceError('too_many', message);
    }
  };
  try {
    await temporal.withDeadline(Date.now() + LIST_MS_MAX, list);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!isGrpcServiceError(cause) || Number(cause.code) !== INVALID_ARGUMENT) throw error;
    throw new ServiceError('invalid_query', `Temporal refuses the query: ${cause.details}`);
  }
  return [...ids];
}

/** Reads what an act would credit now, in the order of the ids. */
export async function planActs(
  { stores }: Pick<WriteDeps, 'stores'>,
  resource: CallbackResource,
  what: string,
  ids: readonly string[],
): Promise<(PlannedAct & Omit<Credited, 'amount'>)[]> {
  const planned = [];
  for (const id of ids) {
    const { document, credited } = await measureAct(stores, { resource, resource_id: id, what });
    const { account_id, currency, amount } = credited;
    const { status } = document;
    planned.push({ id, status, amount: String(amount), is_done: false, account_id, currency });
  }
  return planned;
}

interface PlanRequest {
  what: string;
  reason: string;
  verified: VerifiedOperator | undefined;
}

/**
 * Requests one approval for acts on live whose sum is above a limit.
 * @returns undefined where none is needed
 * @see docs/operators.md#many-at-once
 * @throws ServiceError `currencies_mixed` where a request would have several
 */
export async function requestForMany(
  deps: WriteDeps,
  resource: CallbackResource,
  ids: readonly string[],
  { what, reason, verified }: PlanRequest,
): Promise<ApprovalRequired | undefined> {
  if (verified === undefined || !mayCredit(resource, what)) return undefined;
  const acts = await planActs(deps, resource, what, ids);
  const credits = acts.map(({ amount, ...act }) => ({ ...act, amount: BigInt(amount) }));
  const limits = [await readLimits(deps)];
  const { name: operator } = verified;
  if (!(await isAboveLimit(deps, limits, operator, credits))) return undefined;
  const [currency = '', ...more] = new Set(credits.map((each) => each.currency));
  if (more.length > 0) {
    const names = [currency, ...more].join(', ');
    const message = `Their sum needs the approval of a second operator, and they have ${names}: nothing was done. Add AND ServiceCurrency = '${currency}'.`;
    throw new ServiceError('currencies_mixed', message);
  }
  const accounts = new Set(acts.map(({ account_id }) => account_id));
  const [account_id = null] = accounts.size === 1 ? accounts : [];
  const plan = acts.map(({ id, status, amount, is_done }) => ({ id, status, amount, is_done }));
  const amount = credits.reduce((sum, each) => sum + each.amount, 0n);
  const request = {
    ...{ act: `${resource}.${what}`, resource, target: namePlan(plan), input: {}, plan },
    ...{ account_id, amount, currency, operator, verified, reason },
  };
  return requireApproval(await requestApproval(deps, deps.audit, request));
}

export type Outcome = { id: string } & (
  | { result: 'done'; answer: ActResult; attention: string | null }
  | { result: 'approval_required'; answer: ApprovalRequired }
  /** `unknown`: its workflow gave no answer in time, and may have done it. */
  | { result: 'refused' | 'unknown' | 'failed'; error: unknown }
);

interface ActingOnMany {
  /** Asked before each act, since a key may be revoked meanwhile. */
  verify: () => Promise<VerifiedOperator | undefined>;
  onOutcome: (outcome: Outcome) => void;
}

/**
 * Sends one act to each, eight at once. Goes on after a refusal; begins no other after a failure
 * that the next one would have, too, as a limit that others have reached since the plan, or after
 * eight without an answer.
 * @returns outcomes of those that were begun
 */
export async function actOnMany(
  deps: ActDeps & WriteDeps,
  kind: CallbackResource,
  ids: readonly string[],
  act: Act,
  { verify, onOutcome }: ActingOnMany,
): Promise<Outcome[]> {
  const waiting = [...ids];
  const outcomes: Outcome[] = [];
  const isOver = () =>
    outcomes.some(({ result }) => result === 'failed' || result === 'approval_required') ||
    outcomes.filter(({ result }) => result === 'unknown').length >= UNKNOWN_MAX;
  const work = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined; id = isOver() ? undefined : waiting.shift()) {
      const outcome = await actOnOne(deps, kind, id, act, verify);
      outcomes.push(outcome);
      onOutcome(outcome);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcomes;
}

async function actOnOne(
  deps: ActDeps & WriteDeps,
  kind: CallbackResource,
  id: string,
  act: Act,
  verify: ActingOnMany['verify'],
): Promise<Outcome> {
  try {
    const answer =
      act.approval_id === undefined
        ? await actAsOperator(deps, kind, id, act, await verify())
        : await actOn(deps, kind, id, act);
    if (isApprovalRequired(answer)) return { id, result: 'approval_required', answer };
    // The act is done, also if MongoDB does not answer.
    const resource = await findResource(deps.stores, kind, id).catch(() => undefined);
    return { id, result: 'done', answer, attention: resource?.attention ?? null };
  } catch (error) {
    const code = error instanceof ServiceError && !OF_ALL.test(error.code) ? error.code : undefined;
    if (code === undefined) return { id, result: 'failed', error };
    return { id, result: code === 'outcome_unknown' ? 'unknown' : 'refused', error };
  }
}

/** Codes of failures that the next act would have, too. */
const OF_ALL = /^(temporal_|operator_key_)/;
