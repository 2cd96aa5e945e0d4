import { type Command, InvalidArgumentError } from 'commander';
import { envOf } from '../../domain/environment';
import { followRings } from '../../keys/ring';
import { type Finding, isLeft } from '../../reconcile/finding';
import type { OpenRebuilder } from '../../reconcile/rebuilder';
import { retentionOf } from '../../reconcile/retention';
import { usableKeysFile } from '../connections';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';

import { age, fields, table } from '../output';
import { type ReconcileDeps, type Reconciliation, reconcile } from '../reconcile';

const KINDS: Record<Finding['kind'], string> = {
  missing: 'its workflow has opened it, and MongoDB does not hold it: rebuilt from the history',
  behind: 'MongoDB holds an earlier version than its workflow: rebuilt from the history',
  short: 'a balance lacks what it took: fund what is gone (balance fund), then run again',
  contradicts:
    'both say the same version and another state, or its workflow refused it: left to a person',
  ahead: 'its workflow is older, and takes the document over on its next move: harmless',
  orphan: 'under way in MongoDB without a workflow that runs: restarted, as by orphan restart',
  undelivered: 'an event that is pending without a delivery: delivered, perhaps once more',
  callback: "a bank's callback that no workflow was told of: listed, and it counts for nothing",
};

const HELP = `
What it looks for:
${fields(Object.entries(KINDS)).replace(/^/gm, '  ')}

It prints what it would do, and does it with --apply. Exit code 1 while differences are left.
Keep the api and the connectors stopped until there are none.

Examples:
  npm run -s cli -- reconcile
  npm run -s cli -- reconcile --since 2026-03-01T00:00:00Z --apply --json
  {"data": {"since", "workflows", "documents", "left", "findings": [{"kind", "resource", "id",
  "account_id", "env", "document", "workflow", "age_seconds", "act", "done", "reason"?,
  "key_lost"?}]}}`;

interface Options {
  since?: Date;
  apply?: boolean;
}

export function addReconcileCommand(
  program: Command,
  context: CliContext,
  openRebuilder: OpenRebuilder,
): void {
  program
    .command('reconcile')
    .description('compare Temporal and MongoDB both ways, after either was restored')
    .option('--since <time>', 'look at workflows that ended since (default: all)', parseTime)
    .option('--apply', 'do what it says')
    .addHelpText('after', HELP)
    .action((options: Options) => run(context, openRebuilder, options));
}

async function run(
  context: CliContext,
  openRebuilder: OpenRebuilder,
  { since: given, apply = false }: Options,
): Promise<void> {
  const deps = await depsOf(context, openRebuilder);
  const since = given ?? (await retentionOf(deps.temporal, context.now()));
  const { findings, ...looked } = await reconcile(deps, { since, apply });
  const left = findings.filter(isLeft).length;
  const rows = findings.map((finding) => present(finding, context.now()));
  context.print({
    json: { data: { since: since.toISOString(), ...looked, left, findings: rows } },
    text: textOf(rows, looked, since),
  });
  if (left === 0) return;
  // The report is printed already; this sets the exit code to 1.
  const hint = apply ? '' : ' Run it again with --apply.';
  throw new CliFailure('stores_differ', `Differences left: ${left}.${hint}`);
}

async function depsOf(context: CliContext, openRebuilder: OpenRebuilder): Promise<ReconcileDeps> {
  const settings = context.settings();
  const mongo = await context.mongo();
  const [stores, temporal] = [await context.stores(), await context.temporal()];
  const { progress, now } = context;
  const { lifecycleQueue, webhookQueue } = context.queues();
  const rebuilder = () => {
    const { pay_token: payTokens } = followRings(usableKeysFile(settings));
    return openRebuilder({ mongo, stores, temporal, payTokens, webhookQueue });
  };
  return { lifecycleQueue, webhookQueue, stores, temporal, now, progress, rebuilder };
}

function present({ livemode, since, ...finding }: Finding, now: Date) {
  const env = livemode === null ? null : envOf(livemode);
  const age_seconds = Math.max(0, Math.floor((now.getTime() - Date.parse(since)) / 1_000));
  return { ...finding, env, age_seconds };
}

type Row = ReturnType<typeof present>;

function textOf(
  rows: readonly Row[],
  { workflows, documents }: Omit<Reconciliation, 'findings'>,
  since: Date,
): string {
  const scope =
    `${workflows} workflows that run or ended since ${since.toISOString()}, and ` +
    `${documents} documents under way`;
  if (rows.length === 0) return `${scope}: nothing differs.`;
  const cells = rows.map((row) => [
    row.kind,
    row.resource,
    row.id,
    row.env ?? '-',
    row.document ?? '-',
    row.workflow ?? '-',
    age(row.age_seconds),
    row.done ? `${row.act}: done` : row.act,
  ]);
  const heading = ['KIND', 'RESOURCE', 'ID', 'ENV', 'MONGODB', 'TEMPORAL', 'AGE', 'ACT'];
  return [`${scope}.`, table(heading, cells, ''), ...rows.flatMap(noteOf)].join('\n\n');
}

function noteOf({ resource, id, reason, key_lost }: Row): string[] {
  return [
    ...(reason === undefined ? [] : [`${resource} ${id} is left: ${reason}`]),
    ...(key_lost
      ? [
          `${resource} ${id} is rebuilt without its idempotency key: a repeated request makes another.`,
        ]
      : []),
  ];
}

function parseTime(text: string): Date {
  const time = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(time.getTime())) return time;
  throw new InvalidArgumentError('It must be an ISO 8601 time, such as 2026-03-01T09:00:00Z.');
}
