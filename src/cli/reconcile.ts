import { type Finding, findingOf } from '../reconcile/finding';
import { rebuildAll } from '../reconcile/rebuild-all';
import type { Rebuilder } from '../reconcile/rebuilder';
import { type Difference, walk } from '../reconcile/walk';
import type { Stores } from '../store';
import {
  type DeliveryOrphan,
  findPending,
  findResources,
  type OrphanDeps,
  type ResourceOrphan,
  restart,
} from '../temporal/orphans';

export interface ReconcileDeps extends OrphanDeps {
  stores: Stores;
  /** Opens what rebuilds, when there is something to rebuild. */
  rebuilder: () => Promise<Rebuilder>;
  progress: (line: string) => void;
}

export interface Reconciliation {
  /** Workflows and documents that were looked at. */
  workflows: number;
  documents: number;
  findings: Finding[];
}

interface Options {
  /** Workflows that ended before are not looked at. */
  since: Date;
  apply: boolean;
}

const CALLBACKS_MAX = 1_000;

/**
 * Compares Temporal and MongoDB both ways, and with `apply` brings them together: documents first,
 * then the workflows that they lack, then deliveries. Each act is safe to repeat, so what was stopped
 * is run again.
 */
export async function reconcile(deps: ReconcileDeps, options: Options): Promise<Reconciliation> {
  const { checked: workflows, differences } = await compareAll(deps, options.since);
  const compared = await rebuilt(deps, differences, options.apply);
  const { checked: documents, orphans } = await restarted(deps, differences, options.apply);
  const undelivered = await delivered(deps, options.apply);
  const findings = [...compared, ...orphans, ...undelivered, ...(await waitingCallbacks(deps))];
  return { workflows, documents, findings };
}

async function compareAll(deps: ReconcileDeps, since: Date) {
  const differences: Difference[] = [];
  let checked = 0;
  for await (const step of walk(deps, since)) {
    checked += step.checked;
    differences.push(...step.differences);
    deps.progress(`${checked} workflows looked at, ${differences.length} differ`);
  }
  return { checked, differences };
}

async function rebuilt(
  { rebuilder, progress }: ReconcileDeps,
  differences: readonly Difference[],
  apply: boolean,
): Promise<Finding[]> {
  const isLost = ({ kind }: Difference) => kind === 'missing' || kind === 'behind';
  const lost = differences.filter(isLost);
  const others = differences.filter((each) => !isLost(each)).map(findingOf);
  if (!apply || lost.length === 0) return [...lost.map(findingOf), ...others];
  return [...(await rebuildAll(await rebuilder(), lost, progress)), ...others];
}

/** Looks after the rebuilding: before it, the document of a difference is not to be gone by. */
async function restarted(deps: ReconcileDeps, differences: readonly Difference[], apply: boolean) {
  const known = new Set(apply ? [] : differences.map(({ id }) => id));
  const orphans: Finding[] = [];
  let checked = 0;
  for await (const step of findResources(deps)) {
    checked += step.checked;
    for (const orphan of step.orphans.filter(({ resource }) => !known.has(resource._id))) {
      const finding = orphanFinding(orphan);
      const done = apply && finding.act === 'restart';
      if (done) await restart(deps, orphan);
      orphans.push({ ...finding, done });
    }
  }
  return { checked, orphans };
}

function orphanFinding({ kind: resource, resource: row, workflow }: ResourceOrphan): Finding {
  const { _id: id, account_id, livemode, status, updated_at } = row;
  // Its workflow has reached an end that the document knows nothing of.
  const isBehind = workflow === 'COMPLETED';
  return {
    kind: 'orphan',
    ...{ resource, id, account_id, livemode },
    document: status,
    workflow: workflow.toLowerCase().replace('_', ' '),
    since: updated_at,
    act: isBehind ? 'person' : 'restart',
    done: false,
    ...(isBehind ? { reason: 'Its workflow has ended, before --since or beyond repair.' } : {}),
  };
}

async function delivered(deps: ReconcileDeps, apply: boolean): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const { orphans } of findPending(deps)) {
    for (const orphan of orphans) {
      if (apply) await restart(deps, orphan);
      findings.push({ ...eventFinding(orphan), done: apply });
    }
  }
  return findings;
}

function eventFinding({ event, workflow }: DeliveryOrphan): Finding {
  const { _id: id, account_id, livemode, created, type } = event;
  return {
    kind: 'undelivered',
    resource: 'event',
    ...{ id, account_id, livemode },
    document: `${type}, pending`,
    workflow: workflow.toLowerCase().replace('_', ' '),
    since: created,
    act: 'deliver',
    done: false,
  };
}

/** Callbacks that no workflow was told of: they keep nothing apart, and a person looks at them. */
async function waitingCallbacks({ stores }: ReconcileDeps): Promise<Finding[]> {
  const rows = await stores.callbacks.waiting({ waits: 'any' }).limit(CALLBACKS_MAX).toArray();
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
