import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { inBatches } from '../base/batches';
import type { CallbackResource } from '../domain/callback/callback';
import { webhookWorkflowId } from '../domain/webhook/event';
import { isInFlight, KINDS, LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import { type DeliveryPlace, type DeliveryRow, getDeliveryPlace } from '../store/deliveries';
import { assertNotBehind } from '../temporal/reopening';
import { nextRun } from '../temporal/start';
import { getWorkflowStatus } from '../temporal/status';
import { resumeDelivery } from './events/deliveries';

const PAGE = 200;
const CHECKED_AT_ONCE = 20;
const START_TIMEOUT_MS = 5_000;

/** A later attempt may be from an orphaned delivery. */
const OVERDUE_MS = 60_000;

export interface OrphanDeps {
  stores: ResourceStores & Pick<Stores, 'events' | 'deliveries'>;
  temporal: Client;
  lifecycleQueue: string;
  webhookQueue: string;
  now: () => Date;
  /** Excludes running workflows; absent: each is queried. */
  listRunning?: (workflowIds: readonly string[]) => Promise<ReadonlySet<string>>;
}

export type Orphan = ResourceOrphan | DeliveryOrphan;

interface LastRun {
  /** Such as `TERMINATED`; `NOT_FOUND` when the server knows none. */
  workflow: string;
}

export interface ResourceOrphan extends LastRun {
  kind: CallbackResource;
  resource: Resource;
}

export interface DeliveryOrphan extends LastRun {
  kind: 'delivery';
  event: DeliveryRow;
}

export interface OrphanBatch<O extends Orphan = Orphan> {
  checked: number;
  orphans: O[];
}

/** Last resource of a page, after which a walk goes on. */
export interface ResourcePlace {
  kind: CallbackResource;
  after: string;
}

export async function* findOrphans(
  deps: OrphanDeps,
  ids?: readonly string[],
): AsyncGenerator<OrphanBatch> {
  yield* findResources(deps, ids);
  yield* findDeliveries(deps, ids);
}

export async function* findResources(
  deps: OrphanDeps,
  ids?: readonly string[],
): AsyncGenerator<OrphanBatch<ResourceOrphan>> {
  if (ids === undefined) return yield* findInFlight(deps);
  for (const kind of KINDS) {
    const rows = readNamedResources(deps, kind, ids);
    yield* checkRows(rows, (row) => findResourceOrphan(deps, kind, row));
  }
}

/** Checks page by page, so that a walk can end and go on anywhere; no cursor stays open. */
export async function* findInFlight(
  deps: OrphanDeps,
  from?: ResourcePlace,
  isIncluded: (resource: Resource) => boolean = () => true,
): AsyncGenerator<OrphanBatch<ResourceOrphan> & { place: ResourcePlace }> {
  for (const kind of KINDS.slice(from === undefined ? 0 : KINDS.indexOf(from.kind))) {
    let after = kind === from?.kind ? from.after : '';
    for (let isLast = false; !isLast; ) {
      const page = await LIFECYCLES[kind].page(deps.stores, after, PAGE);
      isLast = page.length < PAGE;
      after = page.at(-1)?._id ?? after;
      const rows = page.filter(isIncluded);
      const getName = ({ _id }: Resource) => LIFECYCLES[kind].workflowId(_id);
      const running = await deps.listRunning?.(rows.map(getName));
      for await (const batch of inBatches(rows, CHECKED_AT_ONCE)) {
        const others = batch.filter((row) => !running?.has(getName(row)));
        const results = await Promise.all(others.map((row) => findResourceOrphan(deps, kind, row)));
        const orphans = results.filter((orphan) => orphan !== undefined);
        yield {
          checked: batch.length,
          orphans,
          place: { kind, after: batch.at(-1)?._id ?? after },
        };
      }
      yield { checked: 0, orphans: [], place: { kind, after } };
    }
  }
}

/** Checks deliveries with an overdue attempt. */
export async function* findDeliveries(
  deps: OrphanDeps,
  ids?: readonly string[],
): AsyncGenerator<OrphanBatch<DeliveryOrphan>> {
  if (ids === undefined) return yield* findLateDeliveries(deps);
  yield* checkRows(readNamedEvents(deps, ids), (event) => findDeliveryOrphan(deps, event));
}

/**
 * Goes on from a place.
 * @param onLate gets each delivery that is overdue although its workflow runs
 */
export async function* findLateDeliveries(
  deps: OrphanDeps,
  from?: DeliveryPlace,
  onLate?: (id: string) => Promise<unknown>,
): AsyncGenerator<OrphanBatch<DeliveryOrphan> & { place: DeliveryPlace | undefined }> {
  const before = new Date(deps.now().getTime() - OVERDUE_MS).toISOString();
  let place = from;
  const rows = deps.stores.deliveries.overdue(before, from);
  const check = (row: DeliveryRow) => {
    place = getDeliveryPlace(row);
    return findDeliveryOrphan(deps, row, onLate);
  };
  for await (const batch of checkRows(rows, check)) yield { ...batch, place };
}

const END_OF_TIME = '9999';

/** Checks pending deliveries, also with the next attempt hours away. */
export async function* findPending(deps: OrphanDeps): AsyncGenerator<OrphanBatch<DeliveryOrphan>> {
  const rows = deps.stores.deliveries.overdue(END_OF_TIME);
  yield* checkRows(rows, (event) => findDeliveryOrphan(deps, event));
}

async function* checkRows<Row, O extends Orphan>(
  rows: AsyncIterable<Row>,
  check: (row: Row) => Promise<O | undefined>,
): AsyncGenerator<OrphanBatch<O>> {
  for await (const batch of inBatches(rows, CHECKED_AT_ONCE)) {
    const results = await Promise.all(batch.map(check));
    yield { checked: batch.length, orphans: results.filter((orphan) => orphan !== undefined) };
  }
}

/**
 * Restarts a workflow, which loads its state; a running one is not affected.
 * @throws ServiceError `record_behind`
 */
export async function restart(deps: OrphanDeps, orphan: Orphan): Promise<void> {
  const { temporal } = deps;
  await temporal.withDeadline(Date.now() + START_TIMEOUT_MS, async () => {
    if (orphan.kind === 'delivery') await resumeDelivery(deps, orphan.event);
    else await restartResource(deps, orphan);
  });
}

async function restartResource(
  { temporal, stores, lifecycleQueue }: OrphanDeps,
  { kind, resource }: ResourceOrphan,
): Promise<void> {
  await assertNotBehind({ temporal, stores }, kind, resource);
  await temporal.workflow.start(LIFECYCLES[kind].workflowType, {
    ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
}

async function* readNamedResources(
  { stores }: OrphanDeps,
  kind: CallbackResource,
  ids: readonly string[],
): AsyncGenerator<Resource> {
  for (const id of ids) {
    const resource = await LIFECYCLES[kind].get(stores, id);
    if (resource !== null && isInFlight(kind, resource.status)) yield resource;
  }
}

async function* readNamedEvents(
  { stores }: OrphanDeps,
  ids: readonly string[],
): AsyncGenerator<DeliveryRow> {
  for (const id of ids) {
    for (const row of [
      await readDelivery(stores, id),
      ...(await stores.deliveries.listSeparate([id])),
    ]) {
      if (row?.delivery.status === 'pending') yield row;
    }
  }
}

/** @param id of an event, or of a delivery outside it */
async function readDelivery(
  { events, deliveries }: OrphanDeps['stores'],
  id: string,
): Promise<DeliveryRow | null> {
  return (await events.get(id)) ?? (await deliveries.get(id));
}

async function findResourceOrphan(
  { temporal, stores }: OrphanDeps,
  kind: CallbackResource,
  resource: Resource,
): Promise<ResourceOrphan | undefined> {
  const { get, workflowId } = LIFECYCLES[kind];
  const workflow = await getWorkflowStatus(temporal, workflowId(resource._id));
  if (workflow === 'RUNNING') return undefined;
  // The workflow may have completed since the document was read.
  const current = await get(stores, resource._id);
  return current !== null && isInFlight(kind, current.status)
    ? { kind, resource, workflow }
    : undefined;
}

async function findDeliveryOrphan(
  { temporal, stores }: OrphanDeps,
  { _id }: DeliveryRow,
  onLate?: (id: string) => Promise<unknown>,
): Promise<DeliveryOrphan | undefined> {
  const workflow = await getWorkflowStatus(temporal, webhookWorkflowId(_id));
  if (workflow === 'RUNNING') {
    await onLate?.(_id);
    return undefined;
  }
  const event = await readDelivery(stores, _id);
  return event?.delivery.status === 'pending' ? { kind: 'delivery', event, workflow } : undefined;
}
