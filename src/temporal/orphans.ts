import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { CallbackResource } from '../domain/callback';
import { isInFlight, KINDS, LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import { nextRun } from './start';
import { statusOf } from './status';

const PAGE = 200;
const CHECKED_AT_ONCE = 20;
const START_TIMEOUT_MS = 5_000;

export interface OrphanDeps {
  stores: ResourceStores;
  temporal: Client;
  lifecycleQueue: string;
}

/** Resource that is under way by its document, while no workflow of it runs. */
export interface Orphan {
  kind: CallbackResource;
  resource: Resource;
  /** End of its last run, such as `TERMINATED`; `NOT_FOUND` when the server knows none. */
  workflow: string;
}

/** Step of a walk. */
export interface Checked {
  checked: number;
  orphans: Orphan[];
}

/**
 * Walks over every resource that is under way, or over those of the given ids, and looks whether
 * its workflow runs. Each step looks at some of them, and gives the orphans among these.
 */
export async function* findOrphans(
  deps: OrphanDeps,
  ids?: readonly string[],
): AsyncGenerator<Checked> {
  for (const kind of KINDS) {
    const rows = ids === undefined ? inFlight(deps, kind) : named(deps, kind, ids);
    for await (const batch of inBatches(rows)) {
      const looked = await Promise.all(batch.map((row) => orphanOf(deps, kind, row)));
      yield { checked: batch.length, orphans: looked.filter((orphan) => orphan !== undefined) };
    }
  }
}

/** Starts its workflow again, which loads its state and goes on; one that runs is left alone. */
export async function restart(
  { temporal, lifecycleQueue }: Omit<OrphanDeps, 'stores'>,
  { kind, resource }: Orphan,
): Promise<void> {
  const start = {
    ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
    workflowIdConflictPolicy: 'USE_EXISTING' as const,
  };
  await temporal.withDeadline(Date.now() + START_TIMEOUT_MS, () =>
    temporal.workflow.start(LIFECYCLES[kind].workflowType, start),
  );
}

/** Reads by pages, so that neither a cursor nor a connection has to live as long as the walk. */
async function* inFlight({ stores }: OrphanDeps, kind: CallbackResource): AsyncGenerator<Resource> {
  for (let after = ''; ; ) {
    const page = await LIFECYCLES[kind].page(stores, after, PAGE);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last._id;
  }
}

async function* named(
  { stores }: OrphanDeps,
  kind: CallbackResource,
  ids: readonly string[],
): AsyncGenerator<Resource> {
  for (const id of ids) {
    const found = await LIFECYCLES[kind].get(stores, id);
    if (found !== null && isInFlight(kind, found.status)) yield found;
  }
}

async function orphanOf(
  { temporal, stores }: OrphanDeps,
  kind: CallbackResource,
  resource: Resource,
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
