import type { Client } from '@temporalio/client';
import type { History } from '@temporalio/common/lib/proto-utils';
import type { CallbackResource } from '../../domain/callback/callback';
import { environmentQueue } from '../../domain/task-queues';
import { KINDS, LIFECYCLES, type Resource, type ResourceStores } from '../../lifecycles';
import {
  BOOKINGS,
  type Booking,
  compare,
  type Disagreement,
  listReceiptBookings,
  REFUSED,
  type ResourceState,
  readResourceState,
  wasRefused,
} from './state';

export interface WalkDeps {
  temporal: Client;
  /** Two services may share a namespace. */
  lifecycleQueue: string;
  stores: ResourceStores;
}

export interface Difference {
  kind: Disagreement;
  resource: CallbackResource;
  id: string;
  workflow: ResourceState | null;
  document: StateDocument | null;
  running: boolean;
  /** Start of its newest run, ISO 8601. */
  started_at: string;
}

type StateDocument = ResourceState & { account_id: string; livemode: boolean; updated_at: string };

interface Run {
  workflowId: string;
  runId: string;
  running: boolean;
  startedAt: Date;
}

const BATCH_SIZE = 20;

/**
 * Compares the histories of the workflows that run, or have ended since, with their documents, kind
 * by kind. The list of workflows lags by seconds, and lacks workflows older than the retention of
 * the namespace.
 */
export async function* walk(deps: WalkDeps, since: Date) {
  for (const kind of KINDS) {
    const resources = [...(await listRuns(deps, kind, since)).values()];
    for (let from = 0; from < resources.length; from += BATCH_SIZE) {
      const batch = resources.slice(from, from + BATCH_SIZE);
      const differences = await Promise.all(batch.map((runs) => findDifference(deps, kind, runs)));
      yield { checked: batch.length, differences: differences.filter((each) => each !== null) };
    }
  }
}

/** Groups runs by workflow id, newest run first. */
async function listRuns(
  { temporal: { workflow }, lifecycleQueue }: WalkDeps,
  kind: CallbackResource,
  since: Date,
): Promise<Map<string, Run[]>> {
  const { workflowType } = LIFECYCLES[kind];
  const queues = [false, true].map((livemode) => environmentQueue(lifecycleQueue, livemode));
  const baseQuery = `WorkflowType = '${workflowType}' AND TaskQueue IN ('${queues.join(`', '`)}')`;
  const ended = `CloseTime >= '${since.toISOString()}'`;
  const runs: Run[] = [];
  for (const which of [`ExecutionStatus = 'Running'`, ended]) {
    for await (const each of workflow.list({ query: `${baseQuery} AND ${which}` })) {
      const { workflowId, runId, startTime: startedAt, status } = each;
      runs.push({ workflowId, runId, startedAt, running: status.name === 'RUNNING' });
    }
  }
  runs.sort((a, b) => a.startedAt.getTime() - b.startedAt.getTime());
  const byId = new Map<string, Run[]>();
  for (const run of runs) byId.set(run.workflowId, [run, ...(byId.get(run.workflowId) ?? [])]);
  return byId;
}

/**
 * Finds the difference of one resource; null when both agree. The document is read last, so while
 * the service runs it can only have a later version; such a resource is compared a second time.
 */
async function findDifference(deps: WalkDeps, resource: CallbackResource, runs: readonly Run[]) {
  const first = await compareOne(deps, resource, runs);
  return first?.kind === 'ahead' ? await compareOne(deps, resource, runs) : first;
}

async function compareOne(
  { temporal, stores }: WalkDeps,
  resource: CallbackResource,
  runs: readonly Run[],
): Promise<Difference | null> {
  const [newest] = runs;
  if (newest === undefined) return null;
  const histories = await fetchHistories(temporal, runs);
  const workflow = readResourceState(histories) ?? (wasRefused(histories) ? REFUSED : null);
  const id = newest.workflowId.slice(newest.workflowId.indexOf(':') + 1);
  const storedDocument = await LIFECYCLES[resource].get(stores, id);
  const document = storedDocument === null ? null : toState(storedDocument);
  const kind = compare(workflow, document);
  if (kind === null) return null;
  const { running, startedAt } = newest;
  const started_at = startedAt.toISOString();
  return { kind, resource, id, workflow, document, running, started_at };
}

/** Fetches the histories, oldest first. */
async function fetchHistories({ workflow }: Client, runs: readonly Run[]): Promise<History[]> {
  const histories: History[] = [];
  for (const { workflowId, runId } of runs.toReversed()) {
    histories.push(await workflow.getHandle(workflowId, runId).fetchHistory());
  }
  return histories;
}

function toState(document: Resource): StateDocument {
  const { status, version, account_id, livemode, updated_at } = document;
  return { status, version, account_id, livemode, updated_at, bookings: listBookings(document) };
}

function listSent(document: Resource): string[] {
  const sent = 'sent_again' in document ? (document.sent_again ?? []) : [];
  const late = 'sent_late' in document && document.sent_late ? [document.sent_late] : [];
  return [...late, ...sent].map(({ id }) => id);
}

function listBookings(document: Resource): string[] {
  if ('due_at' in document) return listSent(document).map((id) => `sent ${id}`);
  if (!('browser_hash' in document)) return [];
  const isBooked: Record<Booking, boolean> = {
    recordDispute: Boolean(document.disputed_at),
    clawBack: Boolean(document.clawed_back),
  };
  return [
    ...BOOKINGS.filter((booking) => isBooked[booking]),
    ...listReceiptBookings(document.receipts ?? []),
  ];
}

/** Returns the earliest time from which the namespace still stores closed workflows. */
export async function getRetentionStart({ workflowService, options }: Client, now: Date) {
  const { namespace } = options;
  const { config } = await workflowService.describeNamespace({ namespace });
  const seconds = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  return new Date(now.getTime() - seconds * 1_000);
}
