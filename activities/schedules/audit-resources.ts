import { activityInfo } from '@temporalio/activity';
import { z } from 'zod';
import type { Logger } from '../../src/base/log';
import { NAMED_MAX, type OrphanFindings } from '../../src/domain/audit';
import { CALLBACK_RESOURCES } from '../../src/domain/callback/callback';
import { LIFECYCLES, type Resource } from '../../src/lifecycles';
import {
  findInFlight,
  findResources,
  type OrphanBatch,
  type OrphanDeps,
  type ResourceOrphan,
} from '../../src/service/orphans';
import type { Stores } from '../../src/store';
import { AUDIT_WALK } from '../../src/store/schedule-runs';
import { reportProgress } from '../shared/progress';

const WALK_MS_MAX = 15 * 60_000;
/** The walk finds the others. */
const ORPHANS_MAX = 1_000;
const HOUR_MS = 3_600_000;
/** @see docs/operators.md#when-something-is-overdue */
const AUTHORIZED_MS_MAX = 5 * 24 * HOUR_MS;

export interface AuditDeps extends OrphanDeps {
  stores: OrphanDeps['stores'] & Pick<Stores, 'callbacks' | 'scheduleRuns'>;
  log: Pick<Logger, 'info' | 'warn'>;
  walkMs?: number;
}

/** A lost worker leaves it to the next try. */
const Progress = z.object({
  part: z.enum(['overdue', 'everything']),
  began_at_ms: z.int(),
  place: z.object({ kind: z.enum(CALLBACK_RESOURCES), after: z.string() }).nullable(),
  checked: z.int(),
  found: z.int(),
  orphans: z.array(z.string()),
  named: z.array(z.string()),
});

type Progress = z.infer<typeof Progress>;

/**
 * Looks at orphans of earlier runs and everything overdue; then, from where the last run ended, at
 * everything in progress, as long as one run may take. A try after a lost worker continues.
 * @param progress changes as the audit goes on
 */
export async function auditInFlight(deps: AuditDeps, progress: Progress): Promise<OrphanFindings> {
  const { scheduleRuns } = deps.stores;
  const walk = await scheduleRuns.readWalk();
  if (progress.part === 'overdue') {
    await checkOverdue(deps, progress, walk.orphans);
    progress.part = 'everything';
    progress.place = walk.place;
  }
  const isComplete = await checkEverything(deps, progress);
  const place = isComplete ? null : progress.place;
  await scheduleRuns.storeWalk({ place, orphans: progress.orphans });
  if (isComplete) await scheduleRuns.note(AUDIT_WALK, deps.now());
  const { checked, found, named } = progress;
  if (found > 0) deps.log.warn({ count: found }, 'orphans found');
  const walked_at = (await scheduleRuns.lastSuccess(AUDIT_WALK)) ?? null;
  return { checked, found, named, walked_at };
}

/** Reads what an earlier try of the same run has reported. */
export function readProgress({ now }: AuditDeps): Progress {
  const stored = Progress.safeParse(activityInfo().heartbeatDetails);
  if (stored.success) return stored.data;
  const empty = { checked: 0, found: 0, orphans: [], named: [] };
  return { part: 'overdue', began_at_ms: now().getTime(), place: null, ...empty };
}

async function checkOverdue(
  deps: AuditDeps,
  progress: Progress,
  earlier: readonly string[],
): Promise<void> {
  const from = progress.place ?? undefined;
  if (from === undefined) {
    for await (const batch of findResources(deps, earlier)) {
      add(progress, batch);
      reportProgress(progress);
    }
  }
  const isIncluded = (resource: Resource) => isOverdue(resource, progress);
  for await (const { place, ...batch } of findInFlight(deps, from, isIncluded)) {
    add(progress, batch);
    progress.place = place;
    reportProgress(progress);
  }
}

/** @returns whether the walk has reached its end */
async function checkEverything(deps: AuditDeps, progress: Progress): Promise<boolean> {
  const { walkMs = WALK_MS_MAX } = deps;
  const endAt = performance.now() + walkMs;
  const from = progress.place ?? undefined;
  const isIncluded = (resource: Resource) => !isOverdue(resource, progress);
  for await (const { place, ...batch } of findInFlight(deps, from, isIncluded)) {
    add(progress, batch);
    progress.place = place;
    reportProgress(progress);
    if (batch.checked > 0 && performance.now() >= endAt) return false;
  }
  return true;
}

function add(progress: Progress, { checked, orphans }: OrphanBatch<ResourceOrphan>): void {
  progress.checked += checked;
  for (const { kind, resource } of orphans) {
    const { _id: id } = resource;
    if (progress.orphans.includes(id)) continue;
    progress.found += 1;
    if (progress.orphans.length < ORPHANS_MAX) progress.orphans.push(id);
    if (progress.named.length < NAMED_MAX) progress.named.push(LIFECYCLES[kind].workflowId(id));
  }
}

function isOverdue(resource: Resource, { began_at_ms }: Progress): boolean {
  if ('due_at' in resource) return Date.parse(resource.due_at) < began_at_ms;
  if (resource.status === 'authorized') {
    return Date.parse(resource.updated_at) < began_at_ms - AUTHORIZED_MS_MAX;
  }
  return Date.parse(resource.expires_at) < began_at_ms;
}
