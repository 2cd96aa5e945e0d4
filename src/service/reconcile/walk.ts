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
  listDisputeBookings,
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
  /** Runs of one kind that are held in memory at once; smaller in tests. */
  runsMax?: number;
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
const RUNS_MAX = 50_000;
const HEX = [...'0123456789abcdef'];

/**
 * Compares the histories of the workflows that run, or have ended since, with their documents, kind
 * by kind. The list of workflows lags by seconds, and lacks workflows older than the retention of
 * the namespace.
 */
export async function* walk(deps: WalkDeps, since: Date) {
  for (const kind of KINDS) {
    for (const prefix of await listPrefixes(deps, kind, since)) {
      const resources = [...(await listRuns(deps, kind, since, prefix)).values()];
      for (let from = 0; from < resources.length; from += BATCH_SIZE) {
        const batch = resources.slice(from, from + BATCH_SIZE);
        const differences = await Promise.all(
          batch.map((runs) => findDifference(deps, kind, runs)),
        );
        yield { checked: batch.length, differences: differences.filter((each) => each !== null) };
      }
    }
  }
}

/** Lists first digits of ids, so that the runs of each are few enough for the memory. */
async function listPrefixes(deps: WalkDeps, kind: CallbackResource, since: Date) {
  const { temporal, runsMax = RUNS_MAX } = deps;
  const counts = await Promise.all(
    buildQueries(deps, kind, since).map((query) => temporal.workflow.count(query)),
  );
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  if (total <= runsMax) return [''];
  if (total <= runsMax * HEX.length) return HEX;
  return HEX.flatMap((first) => HEX.map((second) => `${first}${second}`));
}

/** Builds the queries of the runs that run, and of those that have ended since. */
function buildQueries(
  { lifecycleQueue }: WalkDeps,
  kind: CallbackResource,
  since: Date,
  prefix = '',
) {
  const { workflowType, workflowId } = LIFECYCLES[kind];
  const queues = [false, true].map((livemode) => environmentQueue(lifecycleQueue, livemode));
  const named = prefix === '' ? '' : ` AND WorkflowId STARTS_WITH '${workflowId(prefix)}'`;
  const base = `WorkflowType = '${workflowType}' AND TaskQueue IN ('${queues.join(`', '`)}')${named}`;
  const ended = `CloseTime >= '${since.toISOString()}'`;
  return [`${base} AND ExecutionStatus = 'Running'`, `${base} AND ${ended}`];
}

/** Groups runs by workflow id, newest run first. */
async function listRuns(
  deps: WalkDeps,
  kind: CallbackResource,
  since: Date,
  prefix: string,
): Promise<Map<string, Run[]>> {
  const runs: Run[] = [];
  for (const query of buildQueries(deps, kind, since, prefix)) {
    for await (const each of deps.temporal.workflow.list({ query })) {
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

function listHeld(document: Resource): string[] {
  const held = 'returns_held' in document ? (document.returns_held ?? []) : [];
  return held.map(({ id }) => id);
}

function listSentHeld(document: Resource): string[] {
  const held = 'sent_held' in document ? (document.sent_held ?? []) : [];
  return held.map(({ id }) => id);
}

function listBookings(document: Resource): string[] {
  if ('due_at' in document) {
    return [
      ...listSent(document).map((id) => `sent ${id}`),
      ...listHeld(document).map((id) => `held ${id}`),
      ...listSentHeld(document).map((id) => `sent_held ${id}`),
    ];
  }
  if (!('browser_hash' in document)) return [];
  const isBooked: Record<Booking, boolean> = {
    recordDispute: Boolean(document.disputed_at ?? document.dispute_ended_at),
    clawBack: document.disputes?.some(({ kind }) => kind === 'clawed_back') ?? false,
  };
  return [
    ...BOOKINGS.filter((booking) => isBooked[booking]),
    ...listReceiptBookings(document.receipts ?? []),
    ...listDisputeBookings(document.disputes ?? []),
  ];
}

/** Returns the earliest time from which the namespace still stores closed workflows. */
export async function getRetentionStart({ workflowService, options }: Client, now: Date) {
  const { namespace } = options;
  const { config } = await workflowService.describeNamespace({ namespace });
  const seconds = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  return new Date(now.getTime() - seconds * 1_000);
}
