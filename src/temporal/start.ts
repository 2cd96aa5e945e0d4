import { type Client, WithStartWorkflowOperation, WorkflowNotFoundError } from '@temporalio/client';
import { type Priority, TypedSearchAttributes, type Workflow } from '@temporalio/common';
import { isNotAuthorized } from '../base/mongo';
import type { CallbackResource } from '../domain/banks/callback';
import { formatUnits } from '../domain/crypto/assets';
import { ServiceError } from '../domain/errors';
import { formatMoney } from '../domain/money/money';
import { SEARCH_KEYS } from '../domain/search-attributes';
import { environmentQueue } from '../domain/task-queues';
import type { RequestHashes } from '../encryption/request-fingerprint';
import { LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import { getNewestRun } from './status';

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

export interface LabeledFacts {
  account_id: string;
  livemode: boolean;
  /** Minor units, or an asset's smallest as text; null while unknown. */
  amount: number | string | null;
  currency: string;
  asset?: string;
  network?: string;
  /** Smallest units. */
  amount_due?: string;
  method: string;
  connector: string;
}

/** Builds labels, never from personal data: Temporal stores plain text. */
export function lifecycleLabels(
  resource: CallbackResource,
  facts: LabeledFacts,
  { status, version }: { status: string; version?: number },
) {
  const { account_id, livemode, amount, currency, method, connector, asset, network } = facts;
  const environment = livemode ? 'live' : 'sandbox';
  const units = facts.amount_due ?? amount;
  const isAsset = typeof units === 'string' && asset !== undefined && network !== undefined;
  const assetAmount = isAsset ? formatUnits(units, { asset, network }) : undefined;
  const isMoney = typeof amount === 'number';
  const money = isMoney
    ? formatMoney(amount, currency)
    : (assetAmount ?? `all that remains, ${currency}`);
  return {
    staticSummary: `${resource} ${money} ${method} (${environment})`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: SEARCH_KEYS.resource, value: resource },
      { key: SEARCH_KEYS.status, value: status },
      { key: SEARCH_KEYS.method, value: method },
      { key: SEARCH_KEYS.account, value: account_id },
      { key: SEARCH_KEYS.connector, value: connector },
      { key: SEARCH_KEYS.currency, value: currency },
      { key: SEARCH_KEYS.livemode, value: livemode },
      ...(assetAmount === undefined ? [] : [{ key: SEARCH_KEYS.assetAmount, value: assetAmount }]),
      ...(isMoney ? [{ key: SEARCH_KEYS.amount, value: amount }] : []),
      ...(version === undefined ? [] : [{ key: SEARCH_KEYS.version, value: version }]),
    ]),
  };
}

export function webhookLabels(event: {
  type: string;
  resource_id: string;
  account_id: string;
  livemode: boolean;
}) {
  return {
    staticSummary: `${event.type} ${event.resource_id}`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: SEARCH_KEYS.resource, value: 'webhook' },
      { key: SEARCH_KEYS.account, value: event.account_id },
      { key: SEARCH_KEYS.livemode, value: event.livemode },
    ]),
  };
}

interface ReopeningDeps {
  temporal: Client;
  stores: ResourceStores;
}

type Known = Pick<Resource, '_id' | 'version'>;

/**
 * Refuses to start a run on a document older than the end of the last run, as after a restore: a
 * paid payout would be sent or given back again. Sets the attention reason.
 * @throws ServiceError `record_behind`
 */
export async function assertNotBehind(
  { temporal, stores }: ReopeningDeps,
  kind: CallbackResource,
  { _id: id, version }: Known,
): Promise<void> {
  const { workflowId, collection } = LIFECYCLES[kind];
  const { status, runId } = await getNewestRun(temporal, workflowId(id));
  if (status !== 'COMPLETED') return;
  // Of this run: one that starts meanwhile may last for days.
  const result: unknown = await temporal.workflow.getHandle(workflowId(id), runId).result();
  const { version: completed } = Object(result);
  if (!Number.isInteger(completed) || completed <= version) return;
  // The run may have ended after the caller had read the document.
  const latest = (await LIFECYCLES[kind].get(stores, id))?.version ?? version;
  if (completed <= latest) return;
  const attention_at = Date.now();
  const mark = { version: latest, attention: 'record_behind', audit: null, attention_at } as const;
  await stores[collection].markAttention(id, mark).catch((error) => {
    // A connector may not write it; the service does, once it reads the document.
    if (!isNotAuthorized(error)) throw error;
  });
  throw new ServiceError(
    'record_behind',
    `The workflow of the ${kind} ${id} completed at version ${completed}, and MongoDB has version ` +
      `${latest}, as after a restore: run \`reconcile --apply\` first.`,
  );
}
