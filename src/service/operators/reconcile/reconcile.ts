import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import type { CallbackResource } from '../../../domain/banks/callback';
import { readPositionTime } from '../../../domain/cursor';
import { omitUndefined } from '../../../domain/defined';
import { KINDS } from '../../../lifecycles';
import type { Stores } from '../../../store';
import { listRunning } from '../../../temporal/status';
import {
  type DeliveryOrphan,
  findDeliveries,
  findPending,
  findResources,
  type OrphanDeps,
  restart,
} from './orphans';
import {
  compareWorkflows,
  type Difference,
  formatPlace,
  REFUSED,
  type WalkOptions,
  walk,
} from './walk';

export interface ReconcileDeps extends OrphanDeps {
  stores: Stores;
  rebuilder: () => Promise<Rebuilder>;
  progress: (line: string) => void;
  settleMs?: number;
}

interface Options extends WalkOptions {
  apply: boolean;
}

const CALLBACKS_MAX = 1_000;
/** The service may be running: a step may be written, and not reported yet. */
const SETTLE_MS = 3_000;
const LOOK_AGAIN_MS = 250;

/**
 * Compares Temporal and MongoDB, and with `apply` repairs documents first, then workflows, then
 * deliveries. Safe to interrupt and repeat, and while the service runs.
 */
export async function reconcile(deps: ReconcileDeps, { apply, ...options }: Options) {
  const counts = { workflows: 0, histories: 0 };
  const found: Difference[] = [];
  for await (const { place, checked, read, differences } of walk(deps, options)) {
    counts.workflows += checked;
    counts.histories += read;
    found.push(...differences);
    const { workflows, histories } = counts;
    const text = `${workflows} workflows looked at, ${histories} read one by one, ${found.length} differ`;
    deps.progress(`${text} (at ${formatPlace(place)})`);
  }
  const differences = await omitMoving(deps, found);
  const isLost = ({ kind }: Difference) => kind === 'missing' || kind === 'behind';
  const lost = differences.filter(isLost);
  const rebuildFindings = [
    ...(apply && lost.length > 0
      ? await rebuildAll(await deps.rebuilder(), lost, deps.progress)
      : lost.map(buildFinding)),
    ...differences.filter((each) => !isLost(each)).map(buildFinding),
  ];
  const list = (ids: readonly string[]) => listRunning(deps.temporal, ids);
  const orphanDeps = options.full ? deps : { ...deps, listRunning: list };
  const unresolved = new Set(rebuildFindings.filter(isUnresolved).map(({ id }) => id));
  const { checked: documents, orphans } = await restartOrphans(orphanDeps, unresolved, apply);
  const deliveryFindings = await deliverPending(deps, apply);
  const findings = [
    ...rebuildFindings,
    ...orphans,
    ...deliveryFindings,
    ...(await findWaitingCallbacks(deps)),
  ];
  return { ...counts, documents, findings };
}

/** Leaves out what has caught up, or whose document has changed meanwhile. */
async function omitMoving(deps: ReconcileDeps, differences: readonly Difference[]) {
  const ahead = differences.filter(({ kind }) => kind === 'ahead');
  const versions = new Map(ahead.map(({ id, document }) => [id, document?.version]));
  const isMoving = ({ kind, id, document }: Difference) =>
    kind === 'ahead' && document?.version !== versions.get(id);
  const again = await settle(deps, ahead, async (left) => {
    const found: Difference[] = [];
    for (const kind of KINDS) {
      const ids = left.filter(({ resource }) => resource === kind).map(({ id }) => id);
      found.push(...(await compareWorkflows(deps, kind, ids)));
    }
    return found.filter((each) => !isMoving(each));
  });
  return [...differences.filter(({ kind }) => kind !== 'ahead'), ...again];
}

/** Looks again at what may be in progress, until nothing is left or the time for it is over. */
async function settle<T>(
  { settleMs = SETTLE_MS }: ReconcileDeps,
  found: readonly T[],
  look: (left: readonly T[]) => Promise<T[]>,
): Promise<readonly T[]> {
  const endAt = Date.now() + settleMs;
  let left = found;
  while (left.length > 0) {
    const rest = endAt - Date.now();
    if (rest <= 0) break;
    await sleep(Math.min(rest, LOOK_AGAIN_MS));
    left = await look(left);
  }
  return left;
}

/** Skips documents that still differ from their workflow: a restart would continue from an old state. */
async function restartOrphans(
  deps: ReconcileDeps,
  unresolved: ReadonlySet<string>,
  apply: boolean,
) {
  const orphans: Finding[] = [];
  let checked = 0;
  for await (const step of findResources(deps)) {
    checked += step.checked;
    for (const orphan of step.orphans.filter(({ resource }) => !unresolved.has(resource._id))) {
      // Its workflow has completed, but the document does not show it.
      const isBehind = orphan.workflow === 'COMPLETED';
      const done = apply && !isBehind;
      if (done) await restart(deps, orphan);
      const { _id: id, account_id, livemode, status, updated_at } = orphan.resource;
      orphans.push({
        kind: 'orphan',
        resource: orphan.kind,
        id,
        account_id,
        livemode,
        document: status,
        workflow: formatStatus(orphan.workflow),
        since: updated_at,
        act: isBehind ? 'person' : 'restart',
        done,
        ...(isBehind ? { reason: 'Its workflow has ended, before --since or beyond repair.' } : {}),
      });
    }
  }
  return { checked, orphans };
}

function formatStatus(workflow: string): string {
  return workflow.toLowerCase().replace('_', ' ');
}

async function deliverPending(deps: ReconcileDeps, apply: boolean): Promise<Finding[]> {
  const pending: DeliveryOrphan[] = [];
  for await (const { orphans } of findPending(deps)) pending.push(...orphans);
  // An event is stored before its delivery starts.
  const lost = await settle(deps, pending, async (left) => {
    const ids = new Set(left.map(({ delivery }) => delivery._id));
    const events = new Set(left.map(({ delivery }) => delivery.event_id));
    const found: DeliveryOrphan[] = [];
    for await (const { orphans } of findDeliveries(deps, [...events])) {
      found.push(...orphans.filter(({ delivery }) => ids.has(delivery._id)));
    }
    return found;
  });
  const findings: Finding[] = [];
  for (const orphan of lost) {
    if (apply) await restart(deps, orphan);
    const { event_id: id, account_id, livemode, position, type } = orphan.delivery;
    findings.push({
      kind: 'undelivered',
      resource: 'event',
      id,
      account_id,
      livemode,
      document: `${type}, pending`,
      workflow: formatStatus(orphan.workflow),
      since: readPositionTime(position),
      act: 'deliver',
      done: apply,
    });
  }
  return findings;
}

/** They cause no difference; an operator looks at them. */
async function findWaitingCallbacks(deps: ReconcileDeps): Promise<Finding[]> {
  const { callbacks } = deps.stores;
  const list = () => callbacks.waiting({ waits: 'any' }).limit(CALLBACKS_MAX).toArray();
  // A callback is stored before it is signalled.
  const rows = await settle(deps, await list(), async (left) => {
    const ids = new Set(left.map(({ _id }) => _id));
    return (await list()).filter(({ _id }) => ids.has(_id));
  });
  return rows.map(({ resource, resource_id, name, parked, received_at, _id }) => ({
    kind: 'callback',
    resource,
    id: resource_id,
    account_id: null,
    livemode: null,
    document: `${name} (${_id}), ${parked === null ? 'not signalled' : 'parked'}`,
    workflow: null,
    since: received_at,
    act: 'none',
    done: false,
  }));
}

export interface RebuilderDeps {
  mongo: MongoClient;
  stores: Stores;
  temporal: Client;
  /** Derives the tokens of pages. */
  payTokenKey: Buffer;
  webhookQueue: string;
}

/**
 * - `rebuilt`: the document has the state of the workflow
 * - `short`: the balance is insufficient; nothing was posted
 * - `unreadable`: the histories do not show what was written, or they contradict the document
 */
export interface RebuildResult {
  outcome: 'rebuilt' | 'short' | 'unreadable';
  reason?: string;
  /** Unknown or expired. */
  key_lost?: boolean;
}

export type Part = 'life' | 'disputes';

export interface Rebuilder {
  /**
   * Safe to repeat: existing records are not written again.
   * @param part `life`: all until the first dispute; `disputes`: all, after those of the others
   */
  rebuild(resource: CallbackResource, id: string, part: Part): Promise<RebuildResult>;
}

export type OpenRebuilder = (deps: RebuilderDeps) => Promise<Rebuilder>;

/** `none`: no act is needed; `person`: an operator must act. */
type Act = 'rebuild' | 'restart' | 'deliver' | 'none' | 'person';

export interface Finding {
  kind: Difference['kind'] | 'short' | 'orphan' | 'undelivered' | 'callback';
  resource: Difference['resource'] | 'event';
  id: string;
  account_id: string | null;
  livemode: boolean | null;
  document: string | null;
  workflow: string | null;
  /** ISO 8601; the finding's age starts here. */
  since: string;
  act: Act;
  done: boolean;
  reason?: string;
  /** Unknown or expired. */
  key_lost?: boolean;
}

const ACTS: Record<Difference['kind'], Act> = {
  missing: 'rebuild',
  behind: 'rebuild',
  // The workflow syncs from the database on its next transition.
  ahead: 'none',
  contradicts: 'person',
};

export function buildFinding({ workflow, document, ...difference }: Difference): Finding {
  const { kind, resource, id, running, started_at } = difference;
  const { account_id = null, livemode = null, updated_at = started_at } = document ?? {};
  const run = running ? 'running' : 'closed';
  return {
    ...{ kind, resource, id, account_id, livemode },
    document: document && `${document.status} v${document.version}`,
    // A refusal has no version.
    workflow:
      workflow &&
      `${workflow === REFUSED ? workflow.status : `${workflow.status} v${workflow.version}`}, ${run}`,
    since: updated_at,
    act: ACTS[kind],
    done: false,
  };
}

export function isUnresolved({ act, done }: Finding): boolean {
  return act !== 'none' && !done;
}

/**
 * Repeats as long as one more succeeds: one may need the balance that another releases or credits.
 * Disputes are booked last, since a disputed payment accepts no refunds.
 * @returns a finding for each, in the same order
 */
export async function rebuildAll(
  rebuilder: Rebuilder,
  differences: readonly Difference[],
  progress: (line: string) => void,
): Promise<Finding[]> {
  const results = new Map<Difference, RebuildResult>();
  let remaining = [...differences];
  for (let before = remaining.length + 1; remaining.length > 0 && remaining.length < before; ) {
    before = remaining.length;
    for (const difference of remaining) {
      const { resource, id } = difference;
      const result = await rebuilder.rebuild(resource, id, 'life');
      results.set(difference, result);
      progress(`${resource} ${id}: ${result.outcome}`);
    }
    remaining = remaining.filter((difference) => results.get(difference)?.outcome !== 'rebuilt');
  }
  for (const difference of differences) {
    if (difference.resource !== 'payment' || remaining.includes(difference)) continue;
    const result = await rebuilder.rebuild('payment', difference.id, 'disputes');
    if (result.outcome !== 'rebuilt') results.set(difference, result);
  }
  return differences.map((difference) => {
    const finding = buildFinding(difference);
    const result = results.get(difference);
    if (result === undefined) return finding;
    const { outcome, reason, key_lost } = result;
    const kind = outcome === 'short' ? outcome : finding.kind;
    return {
      ...finding,
      kind,
      done: outcome === 'rebuilt',
      ...omitUndefined({ reason, key_lost }),
    };
  });
}
