import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { CallbackResource } from '../domain/callback';
import { webhookWorkflowId } from '../domain/event';
import { isInFlight, KINDS, LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import type { EventDocument } from '../store/events';
import { resumeDelivery } from './deliveries';
import { nextRun } from './start';
import { statusOf } from './status';

const PAGE = 200;
const CHECKED_AT_ONCE = 20;
const START_TIMEOUT_MS = 5_000;

/** Lateness of an attempt from which its delivery is looked for. */
const OVERDUE_MS = 60_000;

export interface OrphanDeps {
  stores: ResourceStores & Pick<Stores, 'events'>;
  temporal: Client;
  lifecycleQueue: string;
  webhookQueue: string;
  now: () => Date;
}

/** Resource or delivery that is under way by its document, while no workflow of it runs. */
export type Orphan = ResourceOrphan | DeliveryOrphan;

interface Ended {
  /** End of its last run, such as `TERMINATED`; `NOT_FOUND` when the server knows none. */
  workflow: string;
}

export interface ResourceOrphan extends Ended {
  kind: CallbackResource;
  resource: Resource;
}

/** Event that nobody tells the merchant of. */
export interface DeliveryOrphan extends Ended {
  kind: 'delivery';
  event: EventDocument;
}

/** Step of a walk. */
export interface Checked<O extends Orphan = Orphan> {
  checked: number;
  orphans: O[];
}

/**
 * Walks over every resource and delivery that is under way, or over those of the given ids, and
 * looks whether its workflow runs. Each step looks at some of them, and gives the orphans among
 * these.
 */
export async function* findOrphans(
  deps: OrphanDeps,
  ids?: readonly string[],
): AsyncGenerator<Checked> {
  yield* findResources(deps, ids);
  yield* findDeliveries(deps, ids);
}

/** Walks over the resources only. */
export async function* findResources(
  deps: OrphanDeps,
  ids?: readonly string[],
): AsyncGenerator<Checked<ResourceOrphan>> {
  for (const kind of KINDS) {
    const rows = ids === undefined ? inFlight(deps, kind) : namedResources(deps, kind, ids);
    yield* checked(rows, (row) => orphanOf(deps, kind, row));
  }
}

/** Walks over the deliveries only: those whose next attempt should have been made. */
export async function* findDeliveries(
  deps: OrphanDeps,
  ids?: readonly string[],
): AsyncGenerator<Checked<DeliveryOrphan>> {
  const before = new Date(deps.now().getTime() - OVERDUE_MS).toISOString();
  const rows = ids === undefined ? deps.stores.events.overdue(before) : namedEvents(deps, ids);
  yield* checked(rows, (event) => deliveryOrphanOf(deps, event));
}

const EVER = '9999';

/** Walks over every delivery that is pending, also those whose next attempt is hours away. */
export async function* findPending(deps: OrphanDeps): AsyncGenerator<Checked<DeliveryOrphan>> {
  yield* checked(deps.stores.events.overdue(EVER), (event) => deliveryOrphanOf(deps, event));
}

async function* checked<Row, O extends Orphan>(
  rows: AsyncIterable<Row>,
  look: (row: Row) => Promise<O | undefined>,
): AsyncGenerator<Checked<O>> {
  for await (const batch of inBatches(rows)) {
    const looked = await Promise.all(batch.map(look));
    yield { checked: batch.length, orphans: looked.filter((orphan) => orphan !== undefined) };
  }
}

/** Starts its workflow again, which loads its state and goes on; one that runs is left alone. */
export async function restart(deps: OrphanDeps, orphan: Orphan): Promise<void> {
  const { temporal } = deps;
  await temporal.withDeadline(Date.now() + START_TIMEOUT_MS, async () => {
    if (orphan.kind === 'delivery') await resumeDelivery(deps, orphan.event);
    else await restartResource(deps, orphan);
  });
}

async function restartResource(
  { temporal, lifecycleQueue }: OrphanDeps,
  { kind, resource }: ResourceOrphan,
): Promise<void> {
  await temporal.workflow.start(LIFECYCLES[kind].workflowType, {
    ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
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

async function* namedResources(
  { stores }: OrphanDeps,
  kind: CallbackResource,
  ids: readonly string[],
): AsyncGenerator<Resource> {
  for (const id of ids) {
    const found = await LIFECYCLES[kind].get(stores, id);
    if (found !== null && isInFlight(kind, found.status)) yield found;
  }
}

async function* namedEvents(
  { stores }: OrphanDeps,
  ids: readonly string[],
): AsyncGenerator<EventDocument> {
  for (const id of ids) {
    const found = await stores.events.get(id);
    if (found?.delivery.status === 'pending') yield found;
  }
}

async function orphanOf(
  { temporal, stores }: OrphanDeps,
  kind: CallbackResource,
  resource: Resource,
): Promise<ResourceOrphan | undefined> {
  const { get, workflowId } = LIFECYCLES[kind];
  const workflow = await statusOf(temporal, workflowId(resource._id));
  if (workflow === 'RUNNING') return undefined;
  // Its workflow may have ended in good order since the document was read.
  const now = await get(stores, resource._id);
  return now !== null && isInFlight(kind, now.status) ? { kind, resource, workflow } : undefined;
}

async function deliveryOrphanOf(
  { temporal, stores }: OrphanDeps,
  { _id }: EventDocument,
): Promise<DeliveryOrphan | undefined> {
  const workflow = await statusOf(temporal, webhookWorkflowId(_id));
  if (workflow === 'RUNNING') return undefined;
  const event = await stores.events.get(_id);
  return event?.delivery.status === 'pending' ? { kind: 'delivery', event, workflow } : undefined;
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
