import { randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { inBatches } from '../../../base/batches';
import type { CallbackResource } from '../../../domain/banks/callback';
import { readPositionTime } from '../../../domain/cursor';
import { toEnv } from '../../../domain/environment';
import { ServiceError } from '../../../domain/errors';
import { webhookWorkflowId } from '../../../domain/events/event';
import {
  isInFlight,
  KINDS,
  LIFECYCLES,
  type Resource,
  type ResourceStores,
} from '../../../lifecycles';
import type { Stores } from '../../../store';
import type { Audit } from '../../../store/audit';
import type { DeliveryRow } from '../../../store/deliveries';
import { assertNotBehind, nextRun } from '../../../temporal/start';
import { getNewestRun, getWorkflowStatus, type NewestRun } from '../../../temporal/status';
import { redeliver, resumeDeliveries } from '../../events/deliveries';
import { withAuditLine } from '../audit/log';

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

export interface OrphanBatch<O extends Orphan> {
  checked: number;
  orphans: O[];
}

/** Last resource of a page, after which a walk goes on. */
export interface ResourcePlace {
  kind: CallbackResource;
  after: string;
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
    if (orphan.kind === 'delivery') {
      const { delivery, workflow } = orphan;
      const event = await stores.events.get(delivery.event_id);
      if (event === null) return;
      if (workflow === RUNNING) return await redeliver(deps, event, { ...delivery, resume: true });
      return await resumeDeliveries(deps, event, await stores.deliveries.forEvents([event._id]));
    }
    const { kind, resource } = orphan;
    await assertNotBehind({ temporal, stores }, kind, resource);
    await temporal.workflow.start(LIFECYCLES[kind].workflowType, {
      ...nextRun(kind, resource, lifecycleQueue, `cli-${randomUUID()}`),
      workflowIdConflictPolicy: 'USE_EXISTING',
    });
  });
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

const PROGRESS_EVERY = 1_000;
/** Completed, but the document is not final: the database may be a restored backup. */
const COMPLETED = 'COMPLETED';

interface ListDeps extends OrphanDeps {
  progress: (line: string) => void;
}

export type ShownOrphan = ReturnType<typeof presentOrphan>;

export async function listOrphans(deps: ListDeps, limit: number) {
  const { orphans, ...counts } = await walk(deps, limit);
  return { data: orphans.map((orphan) => presentOrphan(orphan, deps.now())), ...counts };
}

/**
 * Skips completed workflows if no ids are named, since `reconcile` updates their documents.
 * @throws ServiceError `not_an_orphan`, after it has restarted the others
 */
export async function restartOrphans(
  deps: ListDeps & { audit: Audit },
  { ids, limit }: { ids: readonly string[]; limit: number },
) {
  const isSkipped = ({ kind, workflow }: Orphan) =>
    ids.length === 0 && kind !== 'delivery' && workflow === COMPLETED;
  const { orphans, ...counts } = await walk(deps, limit, ids, async (orphan) => {
    if (isSkipped(orphan)) return false;
    const { resource: kind, id: target, account_id, livemode, status } = getFacts(orphan);
    const after = { kind, status };
    const change = { act: 'orphan.restarted', account_id, livemode, target, after } as const;
    await withAuditLine(deps.audit, change, () => restart(deps, orphan));
    return true;
  });
  const restartedIds = new Set(orphans.map((orphan) => getFacts(orphan).id));
  const others = ids.filter((id) => !restartedIds.has(id));
  if (others.length > 0) {
    const started =
      restartedIds.size === 0 ? '' : ` Started again: ${[...restartedIds].join(', ')}.`;
    const message = `Not in progress, or with a running workflow: ${others.join(', ')}.${started}`;
    throw new ServiceError('not_an_orphan', message);
  }
  const present = (orphan: Orphan) => presentOrphan(orphan, deps.now());
  return {
    data: orphans.filter((orphan) => !isSkipped(orphan)).map(present),
    left_alone: orphans.filter(isSkipped).map(present),
    ...counts,
  };
}

/** @param onOrphan whether the orphan counts towards the limit; of others only as many are listed */
async function walk(
  deps: ListDeps,
  limit: number,
  ids: readonly string[] = [],
  onOrphan: (orphan: Orphan) => Promise<boolean> = async () => true,
) {
  const orphans: Orphan[] = [];
  const listed = { counted: 0, others: 0 };
  let checked = 0;
  const named = ids.length === 0 ? undefined : ids;
  for (const find of [findResources, findDeliveries]) {
    for await (const batch of find(deps, named)) {
      const before = checked;
      checked += batch.checked;
      for (const orphan of batch.orphans) {
        if (listed.counted === limit) return { orphans, checked, has_more: true };
        const group = (await onOrphan(orphan)) ? 'counted' : 'others';
        if (listed[group] === limit) continue;
        listed[group] += 1;
        orphans.push(orphan);
      }
      if (Math.floor(before / PROGRESS_EVERY) < Math.floor(checked / PROGRESS_EVERY)) {
        deps.progress(`${checked} checked, ${orphans.length} without a workflow so far`);
      }
    }
  }
  return { orphans, checked, has_more: false };
}

function presentOrphan(orphan: Orphan, now: Date) {
  const { resource, id, account_id, livemode, status, updated_at } = getFacts(orphan);
  const age_seconds = Math.floor((now.getTime() - Date.parse(updated_at)) / 1_000);
  const { workflow } = orphan;
  const env = toEnv(livemode);
  return { resource, id, account_id, env, status, updated_at, age_seconds, workflow };
}

function getFacts(orphan: Orphan) {
  const { kind: resource } = orphan;
  if (orphan.kind === 'delivery') {
    const { event_id: id, account_id, livemode, status, position } = orphan.delivery;
    const updated_at = orphan.delivery.next_attempt_at ?? readPositionTime(position);
    return { resource, id, account_id, livemode, status, updated_at };
  }
  const { _id: id, account_id, livemode, status, updated_at } = orphan.resource;
  return { resource, id, account_id, livemode, status, updated_at };
}
