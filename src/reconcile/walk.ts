import type { Client } from '@temporalio/client';
import type { History } from '@temporalio/common/lib/proto-utils';
import type { CallbackResource } from '../domain/callback';
import { environmentQueue } from '../domain/task-queues';
import { KINDS, LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import { compare, type Disagreement } from './compare';
import { BOOKINGS, type Booking, REFUSED, type Standing, standingIn, wasRefused } from './standing';

export interface WalkDeps {
  temporal: Client;
  /** Task queue of the lifecycles: two services may share a namespace. */
  lifecycleQueue: string;
  stores: ResourceStores;
}

/** Resource of which Temporal and MongoDB say different things. */
export interface Difference {
  kind: Disagreement;
  resource: CallbackResource;
  id: string;
  /** Standing that each of them tells. */
  workflow: Standing | null;
  document: StandingDocument | null;
  /** Whether a workflow of it runs. */
  running: boolean;
  /** Start of its newest run, ISO 8601. */
  started_at: string;
}

type StandingDocument = Standing & { account_id: string; livemode: boolean; updated_at: string };

/** Step of a walk. */
export interface Walked {
  checked: number;
  differences: Difference[];
}

/** Run of a workflow, as the list of all of them tells. */
interface Run {
  workflowId: string;
  runId: string;
  running: boolean;
  startedAt: Date;
}

const CHECKED_AT_ONCE = 20;

/**
 * Walks over every workflow of a resource that runs, or has ended since, and holds its history
 * against the document; one kind after the other, each in the order of their starts. The list lags
 * behind by seconds, and forgets what is older than the namespace's retention.
 */
export async function* walk(deps: WalkDeps, since: Date): AsyncGenerator<Walked> {
  for (const kind of KINDS) {
    const resources = [...(await runsOf(deps, kind, since)).values()];
    for (let from = 0; from < resources.length; from += CHECKED_AT_ONCE) {
      const some = resources.slice(from, from + CHECKED_AT_ONCE);
      const found = await Promise.all(some.map((runs) => differenceOf(deps, kind, runs)));
      yield { checked: some.length, differences: found.filter((each) => each !== null) };
    }
  }
}

/** Runs by the workflow's id, each id's newest first, the ids in the order of their starts. */
async function runsOf(
  { temporal: { workflow }, lifecycleQueue }: WalkDeps,
  kind: CallbackResource,
  since: Date,
): Promise<Map<string, Run[]>> {
  const { workflowType } = LIFECYCLES[kind];
  const queues = [false, true].map((livemode) => environmentQueue(lifecycleQueue, livemode));
  const ours = `WorkflowType = '${workflowType}' AND TaskQueue IN ('${queues.join(`', '`)}')`;
  const ended = `CloseTime >= '${since.toISOString()}'`;
  const runs: Run[] = [];
  for (const which of [`ExecutionStatus = 'Running'`, ended]) {
    for await (const each of workflow.list({ query: `${ours} AND ${which}` })) {
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
 * Difference of one resource; null when both agree. The document is read last, so that one of a
 * service at work is at most ahead; what is ahead is looked at again, since its workflow may have
 * been told meanwhile.
 */
async function differenceOf(
  deps: WalkDeps,
  resource: CallbackResource,
  runs: readonly Run[],
): Promise<Difference | null> {
  const first = await lookAt(deps, resource, runs);
  return first?.kind === 'ahead' ? await lookAt(deps, resource, runs) : first;
}

async function lookAt(
  { temporal, stores }: WalkDeps,
  resource: CallbackResource,
  runs: readonly Run[],
): Promise<Difference | null> {
  const [newest] = runs;
  if (newest === undefined) return null;
  const histories = await historiesOf(temporal, runs);
  const workflow = standingIn(histories) ?? (wasRefused(histories) ? REFUSED : null);
  const id = newest.workflowId.slice(newest.workflowId.indexOf(':') + 1);
  const found = await LIFECYCLES[resource].get(stores, id);
  const document = found === null ? null : standingOf(found);
  const kind = compare(workflow, document);
  if (kind === null) return null;
  const { running, startedAt } = newest;
  const started_at = startedAt.toISOString();
  return { kind, resource, id, workflow, document, running, started_at };
}

/** Histories of its runs, the oldest first. */
async function historiesOf({ workflow }: Client, runs: readonly Run[]): Promise<History[]> {
  const histories: History[] = [];
  for (const { workflowId, runId } of runs.toReversed()) {
    histories.push(await workflow.getHandle(workflowId, runId).fetchHistory());
  }
  return histories;
}

function standingOf(found: Resource): StandingDocument {
  const { status, version, account_id, livemode, updated_at } = found;
  return { status, version, account_id, livemode, updated_at, bookings: bookingsOf(found) };
}

/** Bookings that a document holds. */
function bookingsOf(found: Resource): Booking[] {
  if (!('browser_hash' in found)) return [];
  const made: Record<Booking, boolean> = {
    recordLateMoney: Boolean(found.late),
    recordLateReversed: Boolean(found.late?.reversed_at),
    recordDispute: Boolean(found.disputed_at),
    clawBack: Boolean(found.clawed_back),
  };
  return BOOKINGS.filter((booking) => made[booking]);
}
