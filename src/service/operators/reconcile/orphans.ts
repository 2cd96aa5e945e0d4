import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { inBatches } from '../../../base/batches';
import type { CallbackResource } from '../../../domain/callback/callback';
import { webhookWorkflowId } from '../../../domain/webhook/event';
import {
  isInFlight,
  KINDS,
  LIFECYCLES,
  type Resource,
  type ResourceStores,
} from '../../../lifecycles';
import type { Stores } from '../../../store';
import type { DeliveryRow } from '../../../store/deliveries';
import { assertNotBehind } from '../../../temporal/reopening';
import { nextRun } from '../../../temporal/start';
import { getNewestRun, getWorkflowStatus, type NewestRun } from '../../../temporal/status';
import { redeliver, resumeDeliveries } from '../../events/deliveries';

const PAGE = 200;
/** Covered by one list of Temporal, which admits few a second. */
const LISTED_PAGE = 500;
const CHECKED_AT_ONCE = 20;
const START_TIMEOUT_MS = 5_000;

const RUNNING = 'RUNNING';

/** A later attempt may be from an orphaned delivery. */
const OVERDUE_MS = 60_000;

export interface OrphanDeps {
  stores: ResourceStores & Pick<Stores, 'accounts' | 'events' | 'deliveries'>;
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
  delivery: DeliveryRow;
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
    const read = async function* () {
      for (const id of ids) {
        const resource = await LIFECYCLES[kind].get(deps.stores, id);
        if (resource !== null && isInFlight(kind, resource.status)) yield resource;
      }
    };
    yield* checkRows(read(), (row) => findResourceOrphan(deps, kind, row));
  }
}

/** Checks page by page, so that a walk can end and go on anywhere; no cursor stays open. */
export async function* findInFlight(
  deps: OrphanDeps,
  from?: ResourcePlace,
  isIncluded: (resource: Resource) => boolean = () => true,
): AsyncGenerator<OrphanBatch<ResourceOrphan> & { place: ResourcePlace }> {
  const size = deps.listRunning === undefined ? PAGE : LISTED_PAGE;
  for (const kind of KINDS.slice(from === undefined ? 0 : KINDS.indexOf(from.kind))) {
    let after = kind === from?.kind ? from.after : '';
    for (let isLast = false; !isLast; ) {
      const page = await LIFECYCLES[kind].page(deps.stores, after, size);
      isLast = page.length < size;
      after = page.at(-1)?._id ?? after;
      const rows = page.filter(isIncluded);
      const getName = ({ _id }: Resource) => LIFECYCLES[kind].workflowId(_id);
      const running = await deps.listRunning?.(rows.map(getName));
      for await (const batch of inBatches(rows, CHECKED_AT_ONCE)) {
        const others = batch.filter((row) => !running?.has(getName(row)));
        const results = await Promise.all(others.map((row) => findResourceOrphan(deps, kind, row)));
        const orphans = results.filter((orphan) => orphan !== undefined);
        const place = { kind, after: batch.at(-1)?._id ?? after };
        yield { checked: batch.length, orphans, place };
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
  const read = async function* () {
    for (const id of ids) {
      const rows = await deps.stores.deliveries.forEvents([id]);
      yield* rows.filter(({ status }) => status === 'pending');
    }
  };
  yield* checkRows(read(), (row) => findDeliveryOrphan(deps, row));
}

type OnLate = (row: DeliveryRow, run: NewestRun) => Promise<unknown>;

/**
 * Those of sandbox accounts whose clock was moved come last.
 * @param from continues at deliveries that are due then
 * @param onLate gets each delivery that is overdue although its workflow runs
 */
export async function* findLateDeliveries(
  deps: OrphanDeps,
  from?: string | null,
  onLate?: OnLate,
): AsyncGenerator<OrphanBatch<DeliveryOrphan> & { place: string | null | undefined }> {
  const { accounts, deliveries } = deps.stores;
  const at_ms = deps.now().getTime() - OVERDUE_MS;
  let place = from;
  const rows = deliveries.overdue(new Date(at_ms).toISOString(), from);
  const check = (row: DeliveryRow) => {
    place = row.next_attempt_at;
    return findDeliveryOrphan(deps, row, onLate);
  };
  for await (const batch of checkRows(rows, check)) yield { ...batch, place };
  const moved = [...(await accounts.readOffsets())].map(([account_id, offset_ms]) => ({
    account_id,
    from: new Date(at_ms).toISOString(),
    before: new Date(at_ms + offset_ms).toISOString(),
  }));
  for (const owner of moved) {
    const own = checkRows(deliveries.overdueOf(owner), (row) =>
      findDeliveryOrphan(deps, row, onLate),
    );
    for await (const batch of own) yield { ...batch, place };
  }
}

const END_OF_TIME = '9999';

/** Checks pending deliveries, also with the next attempt hours away. */
export async function* findPending(deps: OrphanDeps): AsyncGenerator<OrphanBatch<DeliveryOrphan>> {
  const rows = deps.stores.deliveries.overdue(END_OF_TIME);
  yield* checkRows(rows, (row) => findDeliveryOrphan(deps, row));
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
  const { temporal, stores, lifecycleQueue } = deps;
  await temporal.withDeadline(Date.now() + START_TIMEOUT_MS, async () => {
    if (orphan.kind === 'delivery') return await restartDelivery(deps, orphan);
    const { kind, resource } = orphan;
    await assertNotBehind({ temporal, stores }, kind, resource);
    await temporal.workflow.start(LIFECYCLES[kind].workflowType, {
      ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
      workflowIdConflictPolicy: 'USE_EXISTING',
    });
  });
}

async function restartDelivery(deps: OrphanDeps, { delivery, workflow }: DeliveryOrphan) {
  const { events, deliveries } = deps.stores;
  const event = await events.get(delivery.event_id);
  if (event === null) return;
  if (workflow === RUNNING) await redeliver(deps, event, { ...delivery, resume: true });
  else await resumeDeliveries(deps, event, await deliveries.forEvents([event._id]));
}

async function findResourceOrphan(
  { temporal, stores }: OrphanDeps,
  kind: CallbackResource,
  resource: Resource,
): Promise<ResourceOrphan | undefined> {
  const { get, workflowId } = LIFECYCLES[kind];
  const workflow = await getWorkflowStatus(temporal, workflowId(resource._id));
  if (workflow === RUNNING) return undefined;
  // The workflow may have completed since the document was read.
  const current = await get(stores, resource._id);
  return current !== null && isInFlight(kind, current.status)
    ? { kind, resource, workflow }
    : undefined;
}

/** A redelivery may have been lost before the workflow, which runs for other endpoints, got it. */
async function findDeliveryOrphan(
  { temporal, stores }: OrphanDeps,
  { _id, event_id, endpoint_id }: DeliveryRow,
  onLate?: OnLate,
): Promise<DeliveryOrphan | undefined> {
  const run = await getNewestRun(temporal, webhookWorkflowId(event_id));
  const row = await stores.deliveries.get(_id);
  if (row?.status !== 'pending') return undefined;
  if (run.status === RUNNING && (run.hasTask || run.activityIds.includes(endpoint_id))) {
    await onLate?.(row, run);
    return undefined;
  }
  return { kind: 'delivery', delivery: row, workflow: run.status };
}
