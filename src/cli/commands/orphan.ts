import type { Command } from 'commander';
import { envOf } from '../../domain/environment';
import { findOrphans, type Orphan, type OrphanDeps, restart } from '../../temporal/orphans';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { parseLimit } from '../options';
import { age, table, when } from '../output';

const LIMIT_MAX = 10_000;
const LIMIT_DEFAULT = 1_000;
/** Resources per line of progress on stderr. */
const PROGRESS_EVERY = 1_000;
/** Status of a closed workflow whose document is not final: the database may be an older one. */
const ENDED_BEFORE_RECORD = 'COMPLETED';

const ABOUT = `
An orphan is a payment, refund or payout that is under way in MongoDB while no workflow of it runs,
or an event whose next attempt is a minute late while no workflow delivers it: it was terminated
from the Temporal UI, or lost. Nothing moves it until it is started again.`;
const EXAMPLES = {
  group: `${ABOUT}

Examples:
  npm run -s cli -- orphan list
  npm run -s cli -- orphan restart`,
  list: `${ABOUT}

Example:
  npm run -s cli -- orphan list --json
  {"data": [{"resource", "id", "account_id", "env", "status", "updated_at", "age_seconds",
  "workflow"}], "checked", "has_more"}`,
  restart: `
The workflow loads its state and goes on: a bank is asked what it knows before it is told anything
again, and a delivery makes the attempts that are left. A resource whose workflow has completed is
left alone unless it is named: its document is behind, as after the restoring of an older database,
and \`reconcile\` brings it up to date.

Examples:
  npm run -s cli -- orphan restart
  npm run -s cli -- orphan restart 0d1f… 7c2e… --json
  {"data": [{"resource", "id", …}], "left_alone": [{…}], "checked", "has_more"}`,
};

export function addOrphanCommands(program: Command, context: CliContext): void {
  const group = program
    .command('orphan')
    .description('what is under way without a workflow, and starting it again')
    .addHelpText('after', EXAMPLES.group);
  const limit = ['--limit <n>', `stop at so many, 1 to ${LIMIT_MAX}`] as const;
  group
    .command('list')
    .description(
      'list payments, refunds, payouts and deliveries that are under way without a workflow',
    )
    .option(...limit, parseLimit(LIMIT_MAX), LIMIT_DEFAULT)
    .addHelpText('after', EXAMPLES.list)
    .action((options: { limit: number }) => list(context, options.limit));
  group
    .command('restart')
    .description('start their workflows again: of those named, or of all')
    .argument('[id...]', 'payments, refunds, payouts or events')
    .option(...limit, parseLimit(LIMIT_MAX), LIMIT_DEFAULT)
    .addHelpText('after', EXAMPLES.restart)
    .action((ids: string[], options: { limit: number }) => restartAll(context, ids, options.limit));
}

interface Walk {
  orphans: Orphan[];
  checked: number;
  /** Whether it stopped at the limit. */
  has_more: boolean;
}

/** Walks up to a limit of orphans. @param each called for every orphan as soon as it is found */
async function walk(
  context: CliContext,
  deps: OrphanDeps,
  limit: number,
  ids?: string[],
  each?: (orphan: Orphan) => Promise<void>,
): Promise<Walk> {
  const orphans: Orphan[] = [];
  let checked = 0;
  for await (const step of findOrphans(deps, ids)) {
    const before = checked;
    checked += step.checked;
    for (const orphan of step.orphans) {
      if (orphans.length === limit) return { orphans, checked, has_more: true };
      await each?.(orphan);
      orphans.push(orphan);
    }
    if (Math.floor(before / PROGRESS_EVERY) < Math.floor(checked / PROGRESS_EVERY)) {
      context.progress(`${checked} looked at, ${orphans.length} without a workflow so far`);
    }
  }
  return { orphans, checked, has_more: false };
}

async function depsOf(context: CliContext): Promise<OrphanDeps> {
  const stores = await context.stores();
  return { stores, temporal: await context.temporal(), now: context.now, ...context.queues() };
}

async function list(context: CliContext, limit: number): Promise<void> {
  const { orphans, ...told } = await walk(context, await depsOf(context), limit);
  const data = orphans.map((orphan) => present(orphan, context.now()));
  const none = `All ${told.checked} that are under way have a workflow that runs.`;
  context.print({ json: { data, ...told }, text: tableOf(data, none) + more(told) });
}

async function restartAll(context: CliContext, named: string[], limit: number): Promise<void> {
  const deps = await depsOf(context);
  const { audit } = await context.acting();
  const ids = named.length === 0 ? undefined : named;
  const isAhead = ({ kind, workflow }: Orphan) =>
    ids === undefined && kind !== 'delivery' && workflow === ENDED_BEFORE_RECORD;
  const { orphans, ...told } = await walk(context, deps, limit, ids, async (orphan) => {
    if (isAhead(orphan)) return;
    const { id: target, account_id, livemode, status } = factsOf(orphan);
    const line = { act: 'orphan.restarted', account_id, livemode, target } as const;
    await audit({ ...line, after: { kind: orphan.kind, status } });
    await restart(deps, orphan);
  });
  requireAll(orphans, named);
  const rows = (of: Orphan[]) => of.map((orphan) => present(orphan, context.now()));
  const data = rows(orphans.filter((orphan) => !isAhead(orphan)));
  const left_alone = rows(orphans.filter(isAhead));
  const heading = `Started again: ${data.length}.`;
  context.print({
    json: { data, left_alone, ...told },
    text:
      heading +
      (data.length === 0 ? '' : `\n\n${tableOf(data, '')}`) +
      (left_alone.length === 0
        ? ''
        : `\n\nLeft alone, since their workflow has completed:\n${tableOf(left_alone, '')}`) +
      more(told),
  });
}

/** Refuses ids of no orphan, after the others were started. @throws CliFailure `not_an_orphan` */
function requireAll(orphans: Orphan[], named: string[]): void {
  const found = new Set(orphans.map((orphan) => factsOf(orphan).id));
  const others = named.filter((id) => !found.has(id));
  if (others.length === 0) return;
  const started = found.size === 0 ? '' : ` Started again: ${[...found].join(', ')}.`;
  throw new CliFailure(
    'not_an_orphan',
    `Not under way, or with a workflow that runs: ${others.join(', ')}.${started}`,
  );
}

function present(orphan: Orphan, now: Date) {
  const { id, account_id, livemode, status, updated_at } = factsOf(orphan);
  const { kind: resource, workflow } = orphan;
  const age_seconds = Math.floor((now.getTime() - Date.parse(updated_at)) / 1_000);
  const env = envOf(livemode);
  return { resource, id, account_id, env, status, updated_at, age_seconds, workflow };
}

/** Facts of an orphan; a delivery's are the event's, and the time at which its attempt was due. */
function factsOf(orphan: Orphan) {
  if (orphan.kind === 'delivery') {
    const { _id: id, account_id, livemode, created, delivery } = orphan.event;
    const updated_at = delivery.next_attempt_at ?? created;
    return { id, account_id, livemode, status: delivery.status, updated_at };
  }
  const { _id: id, account_id, livemode, status, updated_at } = orphan.resource;
  return { id, account_id, livemode, status, updated_at };
}

function tableOf(rows: ReturnType<typeof present>[], none: string): string {
  const cells = rows.map((row) => [
    row.resource,
    row.id,
    row.env,
    row.status,
    when(row.updated_at),
    age(row.age_seconds),
    row.workflow.toLowerCase().replace('_', ' '),
    row.account_id,
  ]);
  const heading = ['RESOURCE', 'ID', 'ENV', 'STATUS', 'SINCE', 'AGE', 'WORKFLOW', 'ACCOUNT'];
  return table(heading, cells, none);
}

function more({ checked, has_more }: { checked: number; has_more: boolean }): string {
  return has_more ? `\n\nThere are more: it stopped after ${checked} were looked at.` : '';
}
