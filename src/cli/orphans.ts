import { randomUUID } from 'node:crypto';
import type { Db, Document } from 'mongodb';
import type { CallbackResource } from '../domain/callback';
import { defined } from '../domain/defined';
import { LIFECYCLE_QUEUE } from '../domain/task-queues';
import { isInFlight, KINDS, LIFECYCLES, type ResourceStores } from '../lifecycles';
import { nextRun, type StoredFacts } from '../temporal/start';
import type { WorkflowDeps } from './resources';
import { inTime, statusOf } from './temporal-call';

const CHECKED_AT_ONCE = 20;

export interface OrphanDeps extends WorkflowDeps {
  stores: ResourceStores;
  /** Database with a long time-out, since a walk reads all resources that are under way. */
  db: Db;
}

/** Resource that is under way by its document, while no workflow of it runs. */
export interface Orphan {
  kind: CallbackResource;
  resource: Row;
  /** End of its last run, such as `TERMINATED`; `NOT_FOUND` when the server knows none. */
  workflow: string;
}

/** Step of a walk. */
export interface Checked {
  checked: number;
  orphans: Orphan[];
}

type Row = StoredFacts & { updated_at: string };

const FACTS = [
  'account_id',
  'livemode',
  'amount',
  'currency',
  'method',
  'connector',
  'status',
  'updated_at',
];

/**
 * Walks over every resource that is under way, or over those of the given ids, and looks whether
 * its workflow runs. Each step looks at some of them, and gives the orphans among these.
 */
export async function* findOrphans(
  deps: OrphanDeps,
  ids?: readonly string[],
): AsyncGenerator<Checked> {
  for (const kind of KINDS) {
    for await (const rows of inBatches(rowsOf(deps, kind, ids))) {
      const looked = await Promise.all(rows.map((row) => orphanOf(deps, kind, row)));
      yield { checked: rows.length, orphans: looked.filter((orphan) => orphan !== undefined) };
    }
  }
}

/** Starts its workflow again, which loads its state and goes on; one that runs is left alone. */
export async function restart(
  { temporal, lifecycleQueue = LIFECYCLE_QUEUE }: WorkflowDeps,
  { kind, resource }: Orphan,
): Promise<void> {
  const start = {
    ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
    workflowIdConflictPolicy: 'USE_EXISTING' as const,
  };
  await inTime(temporal, () => temporal.workflow.start(LIFECYCLES[kind].workflowType, start));
}

function rowsOf({ db }: OrphanDeps, kind: CallbackResource, ids?: readonly string[]) {
  const { collection, inFlight } = LIFECYCLES[kind];
  const among = ids && { $in: [...ids] };
  const filter: Document = defined({ _id: among, status: { $in: [...inFlight] } });
  const projection = Object.fromEntries(FACTS.map((field) => [field, 1]));
  return db.collection<Row>(collection).find(filter).project<Row>(projection);
}

async function orphanOf(
  { temporal, stores }: OrphanDeps,
  kind: CallbackResource,
  resource: Row,
): Promise<Orphan | undefined> {
  const { get, workflowId } = LIFECYCLES[kind];
  const workflow = await statusOf(temporal, workflowId(resource._id));
  if (workflow === 'RUNNING') return undefined;
  // Its workflow may have ended in good order since the document was read.
  const now = await get(stores, resource._id);
  return now !== null && isInFlight(kind, now.status) ? { kind, resource, workflow } : undefined;
}

async function* inBatches<T>(rows: AsyncIterable<T>): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const row of rows) {
    batch.push(row);
    if (batch.length < CHECKED_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
