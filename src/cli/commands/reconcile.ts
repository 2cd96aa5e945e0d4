import { z } from 'zod';
import { toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { followKeyFile } from '../../encryption/service-keys';
import { endRestore, isBehind, readEpochs } from '../../service/installation/epoch';
import {
  listOrphans,
  restartOrphans,
  type ShownOrphan,
} from '../../service/operators/reconcile/orphans';
import {
  type Finding,
  isUnresolved,
  type ReconcileDeps,
  reconcile,
} from '../../service/operators/reconcile/reconcile';
import { getRetentionStart, readPlace } from '../../service/operators/reconcile/walk';
import { defineCommand, defineGroup } from '../command';
import type { CliContext } from '../context';
import { Id, limit, Reason, readBy, Since } from '../options';
import { fields, formatAge, formatTime, table } from '../output';

const KINDS: Record<Finding['kind'], string> = {
  missing: 'its workflow has created it, and MongoDB does not hold it: rebuilt from the history',
  behind: 'MongoDB holds an earlier version than its workflow: rebuilt from the history',
  short: 'a balance lacks what it took: fund the difference (balance fund), then run again',
  contradicts:
    'both have the same version and another state, or its workflow refused it: left to an operator',
  ahead: 'its workflow is older, and syncs from the document on its next transition: harmless',
  orphan: 'in flight in MongoDB without a workflow that runs: restarted, as by orphan restart',
  undelivered: 'an event that is pending without a delivery: delivered, perhaps a second time',
  callback: "a bank's callback that no workflow has received: listed, and not a difference",
};

const FROM_WITH_APPLY =
  '--apply begins again, without --from: what agrees by now costs no history.';
const DONE = 'Done: the API takes writes again, and the workers start.';
const PLACE_FAULT = 'It must be a place that a run has named, such as payment or payment:3f.';

export const reconcileCommand = defineCommand({
  name: 'reconcile',
  description: 'compare Temporal and MongoDB both ways, after either was restored',
  options: z.object({
    since: Since.optional()
      .describe('include workflows that ended since (default: all)')
      .meta({ placeholder: 'time' }),
    full: z
      .boolean()
      .default(false)
      .describe("read each history: where Temporal's list of workflows may be wrong"),
    from: readBy(readPlace, PLACE_FAULT)
      .optional()
      .describe('leave out what an interrupted run has compared: the place that it named last')
      .meta({ placeholder: 'place' }),
    apply: z.boolean().default(false).describe('do what it says'),
    done: z.boolean().default(false).describe('let the service write again, whatever is left'),
    reason: Reason.optional(),
  }),
  notes: `
Findings:
${fields(Object.entries(KINDS)).replace(/^/gm, '  ')}

It compares status and version in Temporal's list of workflows, then those that differ one by one, and may run
while the service does.

Exit code 1 while differences are left. While MongoDB is older than Temporal, the API refuses writes and no
worker starts: --apply ends that where nothing is left, no idempotency key is lost and --since reaches back far
enough; --done ends it in any case, and requires a --reason.`,
  example: 'reconcile --since 2026-03-01T00:00:00Z --apply',
  run: async (context, { since: earliest, from, full, apply, done, reason }) => {
    if (apply && from !== undefined) throw new ServiceError('invalid_request', FROM_WITH_APPLY);
    const read = await context.withTemporal(await context.readDeps());
    const rebuilder = () => {
      const { pay_token: payTokenKey } = followKeyFile(context.keysFile());
      return context.openRebuilder({ ...read, payTokenKey });
    };
    const deps = { ...read, progress: context.progress, rebuilder };
    if (done) {
      if (reason === undefined) {
        throw new ServiceError('invalid_request', '--done requires a --reason.');
      }
      const epochs = await endRestore(await createEpochDeps(context, deps), { reason });
      return context.print({ json: { done: true, ...epochs }, text: DONE });
    }
    const since = earliest ?? (await getRetentionStart(deps.temporal, context.now()));
    const { findings, ...counts } = await reconcile(deps, { since, from, full, apply });
    const left = findings.filter(isUnresolved).length;
    const rows = findings.map((finding) => presentFinding(finding, context.now()));
    const { workflows, histories, documents } = counts;
    const scope =
      `${workflows} workflows that run or ended since ${since.toISOString()} (${histories} read one by ` +
      `one), and ${documents} documents in flight`;
    context.print({
      json: { data: { since: since.toISOString(), ...counts, left, findings: rows } },
      text: rows.length === 0 ? `${scope}: nothing differs.` : `${scope}.\n\n${formatRows(rows)}`,
    });
    const isKeyLost = findings.some(({ key_lost }) => key_lost === true);
    if (apply) await endWhereComplete(context, deps, { since, left, isKeyLost });
    if (left === 0) return;
    const hint = apply ? '' : ' Run it again with --apply.';
    throw new ServiceError('stores_differ', `Differences left: ${left}.${hint}`);
  },
});

const KEYS_LOST =
  'Idempotency keys are lost, so that a repeated request would pay again. Notify the merchants, then run ' +
  '`reconcile --done --reason TEXT`.';

/** Ends the state after a restore, unless workflows that ended before `since` may differ. */
async function endWhereComplete(
  context: CliContext,
  deps: ReconcileDeps,
  { since, left, isKeyLost }: { since: Date; left: number; isKeyLost: boolean },
): Promise<void> {
  const epochDeps = await createEpochDeps(context, deps);
  const epochs = await readEpochs(epochDeps);
  if (!isBehind(epochs)) return;
  // An interrupted run may have rebuilt without a key what shows no difference any more. Noted, since
  // the records end after a day.
  const restoredTo = new Date(epochs.mongodb ?? 0);
  if (isKeyLost || (await deps.stores.idempotency.hasLostKeys(restoredTo))) {
    await epochDeps.epoch.noteLostKeys(true);
  }
  if (left > 0) return;
  if ((await epochDeps.epoch.read())?.keys_lost) {
    context.progress(KEYS_LOST);
    return;
  }
  if (since.toISOString() > (epochs.mongodb ?? '')) {
    context.progress(`MongoDB has the state of ${epochs.mongodb}: --since must not be later.`);
    return;
  }
  await endRestore(epochDeps, { reason: 'reconcile --apply left no difference' });
  context.progress(DONE);
}

async function createEpochDeps(context: CliContext, { temporal, lifecycleQueue }: ReconcileDeps) {
  const { audit, stores, now } = await context.actingDeps();
  return { audit, temporal, lifecycleQueue, epoch: stores.epoch, now };
}

function presentFinding({ livemode, since, ...finding }: Finding, now: Date) {
  const env = livemode === null ? null : toEnv(livemode);
  const age_seconds = Math.max(0, Math.floor((now.getTime() - Date.parse(since)) / 1_000));
  return { ...finding, env, age_seconds };
}

function formatRows(rows: readonly ReturnType<typeof presentFinding>[]): string {
  const cells = rows.map((row) => [
    ...[row.kind, row.resource, row.id, row.env ?? '-', row.document ?? '-', row.workflow ?? '-'],
    ...[formatAge(row.age_seconds), row.done ? `${row.act}: done` : row.act],
  ]);
  const heading = ['KIND', 'RESOURCE', 'ID', 'ENV', 'MONGODB', 'TEMPORAL', 'AGE', 'ACT'];
  const notes = rows.flatMap(({ resource, id, reason, key_lost }) => {
    const name = `${resource} ${id}`;
    const lost = `${name} is rebuilt without its idempotency key: a repeated request creates another.`;
    return [
      ...(reason === undefined ? [] : [`${name} is left: ${reason}`]),
      ...(key_lost ? [lost] : []),
    ];
  });
  return [table(heading, cells, ''), ...notes].join('\n\n');
}

const Limit = limit(10_000, 1_000);

const list = defineCommand({
  name: 'list',
  description: 'list resources and deliveries in flight without a workflow',
  options: z.object({ limit: Limit }),
  example: 'orphan list',
  run: async (context, { limit: count }) => {
    const json = await listOrphans(await openOrphans(context), count);
    const none = `All ${json.checked} in flight have a workflow that runs.`;
    context.print({ json, text: orphanTable(json.data, none) + formatMore(json) });
  },
});

const restart = defineCommand({
  name: 'restart',
  description: 'restart their workflows: of those named, or of all',
  options: z.object({
    ids: z
      .array(Id)
      .default([])
      .describe('resources or events')
      .meta({ argument: true, placeholder: 'id' }),
    limit: Limit,
  }),
  notes: `
The workflow loads its state and continues. A resource with a completed workflow is left alone: its document
is behind, as after a restore, and \`reconcile\` updates it.`,
  example: 'orphan restart 0d1f… 7c2e…',
  run: async (context, options) => {
    const { audit } = await context.actingDeps();
    const json = await restartOrphans({ ...(await openOrphans(context)), audit }, options);
    const { data, left_alone } = json;
    const parts = [
      `Started again: ${data.length}.`,
      ...(data.length === 0 ? [] : [orphanTable(data, '')]),
      ...(left_alone.length === 0
        ? []
        : [`Left alone, since their workflow has completed:\n${orphanTable(left_alone, '')}`]),
    ];
    context.print({ json, text: parts.join('\n\n') + formatMore(json) });
  },
});

async function openOrphans(context: CliContext) {
  return { ...(await context.withTemporal(await context.readDeps())), progress: context.progress };
}

function orphanTable(rows: readonly ShownOrphan[], none: string): string {
  const cells = rows.map((row) => [
    row.resource,
    row.id,
    row.env,
    row.status,
    formatTime(row.updated_at),
    formatAge(row.age_seconds),
    row.workflow.toLowerCase().replace('_', ' '),
    row.account_id,
  ]);
  const heading = ['RESOURCE', 'ID', 'ENV', 'STATUS', 'SINCE', 'AGE', 'WORKFLOW', 'ACCOUNT'];
  return table(heading, cells, none);
}

function formatMore({ checked, has_more }: { checked: number; has_more: boolean }): string {
  return has_more ? `\n\nThere are more: it stopped after ${checked} were checked.` : '';
}

export const orphanCommands = defineGroup({
  name: 'orphan',
  description: 'what is in flight without a workflow, and restarting it',
  notes: `
An orphan is a payment, refund or payout that is in flight in MongoDB while none of its workflows runs, or
an event whose next attempt is a minute late without a delivery: the workflow was terminated, or lost.`,
  commands: [list, restart],
});
