import { activityInfo } from '@temporalio/activity';
import { z } from 'zod';
import { inBatches } from '../../src/base/batches';
import type { Logger } from '../../src/base/log';
import { deliverStored } from '../../src/callbacks/deliver';
import { CALLBACK_RESOURCES } from '../../src/domain/banks/callback';
import { webhookWorkflowId } from '../../src/domain/events/event';
import {
  type CallbackFindings,
  type DeliveryFindings,
  NAMED_MAX,
  type OrphanFindings,
  PARKED_ATTENTION_DAYS,
} from '../../src/domain/operators/audit-log';
import { LIFECYCLES, type Resource } from '../../src/lifecycles';
import { tryDeliveryNow } from '../../src/service/events/deliveries';
import {
  findInFlight,
  findLateDeliveries,
  findResources,
  type OrphanBatch,
  type OrphanDeps,
  type ResourceOrphan,
  restart,
} from '../../src/service/operators/reconcile/orphans';
import type { Stores } from '../../src/store';
import type { DeliveryRow } from '../../src/store/deliveries';
import { AUDIT_WALK } from '../../src/store/schedule-runs';
import { createRepin, type NewestRun } from '../../src/temporal/status';
import { reportProgress } from '../shared/record';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** @see docs/operators.md#when-something-is-overdue */
const REVERSAL_MS = 5 * DAY_MS;
const SENT_BACK_AT_ONCE = 500;
/** From this age on, a callback has lost its connector. */
const UNSIGNALLED_MS = 5 * MINUTE_MS;

export type AuditActivities = ReturnType<typeof createAuditActivities>;

export function createAuditActivities(deps: AuditDeps) {
  return {
    /** Last step, so it notes the run. */
    auditResources: async (): Promise<OrphanFindings> => {
      // What an earlier try of the same run has reported.
      const stored = Progress.safeParse(activityInfo().heartbeatDetails);
      const empty = { checked: 0, found: 0, orphans: [], named: [], place: null };
      const began_at_ms = deps.now().getTime();
      const progress = stored.data ?? { part: 'overdue', began_at_ms, ...empty };
      const findings = await auditInFlight(deps, progress);
      // The walk's own progress, from which the next try continues.
      await flagLateReversals(deps, () => reportProgress(progress));
      await deps.stores.scheduleRuns.note('audit', deps.now());
      return findings;
    },
    auditDeliveries: (): Promise<DeliveryFindings> => auditDeliveries(deps),
    /** Parked callbacks are left to operators. */
    auditCallbacks: (): Promise<CallbackFindings> => auditCallbacks(deps),
  };
}

async function flagLateReversals(
  { stores: { payments, movements }, now, log }: AuditDeps,
  report: () => void,
): Promise<void> {
  const at = now().getTime();
  const sentBack = payments.listSentBack(at - REVERSAL_MS);
  for await (const batch of inBatches(sentBack, SENT_BACK_AT_ONCE)) {
    const late = new Set(await movements.keepLate(batch.map(({ _id }) => _id)));
    for (const { _id: payment_id, version } of batch.filter(({ _id }) => late.has(_id))) {
      report();
      const reason = { attention: 'late_reversal_overdue', audit: null, attention_at: at } as const;
      await payments.markAttention(payment_id, { version, ...reason });
      log.warn({ payment_id }, 'late funds are not confirmed to be back');
    }
  }
}

/** A lost worker leaves it to the next try. */
const DeliveryProgress = z.object({
  from: z.string().nullable().optional(),
  checked: z.int(),
  restarted: z.int(),
  failed: z.int(),
  named: z.array(z.string()),
});

type DeliveryProgress = z.infer<typeof DeliveryProgress>;

async function auditDeliveries(deps: AuditDeps): Promise<DeliveryFindings> {
  const stored = DeliveryProgress.safeParse(activityInfo().heartbeatDetails);
  const { from, ...total }: DeliveryProgress = stored.success
    ? stored.data
    : { checked: 0, restarted: 0, failed: 0, named: [] };
  /** Leaves what fails to the next audit: one row must not end it. */
  const guard = async ({ event_id, endpoint_id }: DeliveryRow, work: () => Promise<unknown>) => {
    try {
      await work();
      return true;
    } catch (err) {
      total.failed += 1;
      deps.log.warn({ event_id, endpoint_id, err }, 'delivery neither started nor tried again');
      return false;
    }
  };
  const repin = createRepin(deps.temporal, deps.now);
  const onLate = (row: DeliveryRow, run: NewestRun) =>
    guard(row, async () => {
      await repin(webhookWorkflowId(row.event_id), run);
      // After a kill, a delivery may not know that its wait for an endpoint has ended.
      await tryDeliveryNow(deps.temporal, row);
    });
  for await (const { checked, orphans, place } of findLateDeliveries(deps, from, onLate)) {
    for (const orphan of orphans) {
      if (!(await guard(orphan.delivery, () => restart(deps, orphan)))) continue;
      total.restarted += 1;
      addName(total.named, orphan.delivery.event_id);
    }
    total.checked += checked;
    reportProgress({ ...total, from: place });
  }
  if (total.restarted > 0) deps.log.warn({ count: total.restarted }, 'deliveries restarted');
  return total;
}

async function auditCallbacks(deps: AuditDeps): Promise<CallbackFindings> {
  const { callbacks } = deps.stores;
  const total: CallbackFindings = {
    delivered: 0,
    waiting: 0,
    parked: 0,
    parked_lately: 0,
    named: [],
  };
  const waits = { waits: 'unsignalled', received_before: ago(deps, UNSIGNALLED_MS) } as const;
  for await (const callback of callbacks.waiting(waits)) {
    reportProgress(total.delivered + total.waiting);
    const { connector, body } = callback;
    const fields = { connector, callback_id: body.callback_id };
    try {
      // A callback without a resource is parked, and counted below.
      if ((await deliverStored(deps, callback)) === 'parked') continue;
      total.delivered += 1;
      deps.log.warn(fields, 'callback delivered late');
    } catch (err) {
      total.waiting += 1;
      addName(total.named, callback._id);
      deps.log.warn({ ...fields, err }, 'callback not delivered');
    }
  }
  const recent = {
    waits: 'parked',
    received_from: ago(deps, PARKED_ATTENTION_DAYS * DAY_MS),
  } as const;
  total.parked = await callbacks.countWaiting({ waits: 'parked' });
  total.parked_lately = await callbacks.countWaiting(recent);
  for await (const { _id } of callbacks.waiting(recent).limit(NAMED_MAX)) addName(total.named, _id);
  return total;
}

function ago({ now }: AuditDeps, ms: number): string {
  return new Date(now().getTime() - ms).toISOString();
}

function addName(named: string[], id: string): void {
  if (named.length < NAMED_MAX) named.push(id);
}

const WALK_MS_MAX = 15 * 60_000;
/** The walk finds the others. */
const ORPHANS_MAX = 1_000;
const HOUR_MS = 3_600_000;
/** @see docs/operators.md#when-something-is-overdue */
const AUTHORIZED_MS_MAX = 5 * 24 * HOUR_MS;

interface AuditDeps extends OrphanDeps {
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
async function auditInFlight(deps: AuditDeps, progress: Progress): Promise<OrphanFindings> {
  const { accounts, scheduleRuns } = deps.stores;
  const walk = await scheduleRuns.readWalk();
  const offsets = await accounts.readOffsets();
  /** Compares with the time of the account, whose sandbox clock may have been advanced. */
  const isLate = (resource: Resource): boolean => {
    const offset_ms = resource.livemode ? 0 : (offsets.get(resource.account_id) ?? 0);
    const account_ms = progress.began_at_ms + offset_ms;
    if ('due_at' in resource) return Date.parse(resource.due_at) < account_ms;
    if (resource.status === 'authorized') {
      return Date.parse(resource.updated_at) < account_ms - AUTHORIZED_MS_MAX;
    }
    // A bank may take its time to decide.
    if ('evidence_due_at' in resource) return false;
    return Date.parse(resource.expires_at) < account_ms;
  };
  if (progress.part === 'overdue') {
    await checkOverdue(deps, progress, walk.orphans, isLate);
    progress.part = 'everything';
    progress.place = walk.place;
  }
  const isComplete = await checkEverything(deps, progress, isLate);
  const place = isComplete ? null : progress.place;
  await scheduleRuns.storeWalk({ place, orphans: progress.orphans });
  if (isComplete) await scheduleRuns.note(AUDIT_WALK, deps.now());
  const { checked, found, named } = progress;
  if (found > 0) deps.log.warn({ count: found }, 'orphans found');
  const walked_at = (await scheduleRuns.lastSuccess(AUDIT_WALK)) ?? null;
  return { checked, found, named, walked_at };
}

async function checkOverdue(
  deps: AuditDeps,
  progress: Progress,
  earlier: readonly string[],
  isLate: (resource: Resource) => boolean,
): Promise<void> {
  const from = progress.place ?? undefined;
  if (from === undefined) {
    for await (const batch of findResources(deps, earlier)) {
      add(progress, batch);
      reportProgress(progress);
    }
  }
  for await (const { place, ...batch } of findInFlight(deps, from, isLate)) {
    add(progress, batch);
    progress.place = place;
    reportProgress(progress);
  }
}

/** @returns whether the walk has reached its end */
async function checkEverything(
  deps: AuditDeps,
  progress: Progress,
  isLate: (resource: Resource) => boolean,
): Promise<boolean> {
  const { walkMs = WALK_MS_MAX } = deps;
  const endAt = performance.now() + walkMs;
  const from = progress.place ?? undefined;
  const isIncluded = (resource: Resource) => !isLate(resource);
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
