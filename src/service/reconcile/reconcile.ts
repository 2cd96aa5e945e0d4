import type { Stores } from '../../store';
import {
  type DeliveryOrphan,
  findPending,
  findResources,
  type OrphanDeps,
  type ResourceOrphan,
  restart,
} from '../orphans';
import { buildFinding, type Finding, type Rebuilder, rebuildAll } from './rebuild';
import { type Difference, walk } from './walk';

export interface ReconcileDeps extends OrphanDeps {
  stores: Stores;
  rebuilder: () => Promise<Rebuilder>;
  progress: (line: string) => void;
}

interface Options {
  /** Workflows that ended earlier are not checked. */
  since: Date;
  apply: boolean;
}

const CALLBACKS_MAX = 1_000;

/**
 * Compares Temporal and MongoDB in both directions, and with `apply` repairs the differences:
 * documents first, then missing workflows, then deliveries. An interrupted run can be repeated.
 */
export async function reconcile(deps: ReconcileDeps, options: Options) {
  const { checked: workflows, differences } = await compareAll(deps, options.since);
  const rebuildFindings = await rebuildLost(deps, differences, options.apply);
  const { checked: documents, orphans } = await restartOrphans(deps, differences, options.apply);
  const deliveryFindings = await deliverPending(deps, options.apply);
  const findings = [
    ...rebuildFindings,
    ...orphans,
    ...deliveryFindings,
    ...(await findWaitingCallbacks(deps)),
  ];
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

async function rebuildLost(
  { rebuilder, progress }: ReconcileDeps,
  differences: readonly Difference[],
  apply: boolean,
): Promise<Finding[]> {
  const isLost = ({ kind }: Difference) => kind === 'missing' || kind === 'behind';
  const lost = differences.filter(isLost);
  const others = differences.filter((each) => !isLost(each)).map(buildFinding);
  if (!apply || lost.length === 0) return [...lost.map(buildFinding), ...others];
  return [...(await rebuildAll(await rebuilder(), lost, progress)), ...others];
}

/** Until the rebuild, a document that differs from its workflow is not reliable. */
async function restartOrphans(
  deps: ReconcileDeps,
  differences: readonly Difference[],
  apply: boolean,
) {
  const differingIds = new Set(apply ? [] : differences.map(({ id }) => id));
  const orphans: Finding[] = [];
  let checked = 0;
  for await (const step of findResources(deps)) {
    checked += step.checked;
    for (const orphan of step.orphans.filter(({ resource }) => !differingIds.has(resource._id))) {
      const finding = buildOrphanFinding(orphan);
      const done = apply && finding.act === 'restart';
      if (done) await restart(deps, orphan);
      orphans.push({ ...finding, done });
    }
  }
  return { checked, orphans };
}

function buildOrphanFinding({ kind: resource, resource: row, workflow }: ResourceOrphan): Finding {
  const { _id: id, account_id, livemode, status, updated_at } = row;
  // Its workflow has completed, but the document does not show it.
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

async function deliverPending(deps: ReconcileDeps, apply: boolean): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const { orphans } of findPending(deps)) {
    for (const orphan of orphans) {
      if (apply) await restart(deps, orphan);
      findings.push({ ...buildEventFinding(orphan), done: apply });
    }
  }
  return findings;
}

function buildEventFinding({ event, workflow }: DeliveryOrphan): Finding {
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

/** They cause no difference; an operator looks at them. */
async function findWaitingCallbacks({ stores }: ReconcileDeps): Promise<Finding[]> {
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
