import { readPositionTime } from '../../domain/cursor';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import type { Audit } from '../../store/audit';
import { withAuditLine } from './audit/log';
import { findOrphans, type Orphan, type OrphanDeps, restart } from './reconcile/orphans';

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
  for await (const batch of findOrphans(deps, ids.length === 0 ? undefined : ids)) {
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
