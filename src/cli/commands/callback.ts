import type { Command } from 'commander';
import { LIFECYCLES } from '../../lifecycles';
import type { CallbackDocument, WaitingFilter } from '../../store/callbacks';
import { deliverAgain, findCallback } from '../callbacks';
import type { CliContext } from '../context';
import { parseLimit } from '../options';
import { fields, table, when } from '../output';

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;

const ABOUT = `
A callback is what a bank reported. It waits when it is parked (its connector has no such resource),
or when its connector died before it reached the workflow and the bank did not repeat it.`;
const EXAMPLES = {
  group: `${ABOUT}

Examples:
  npm run -s cli -- callback list --parked
  npm run -s cli -- callback show sandbox:cb_…
  npm run -s cli -- callback deliver sandbox:cb_…`,
  list: `${ABOUT}

Example:
  npm run -s cli -- callback list --unsignalled --connector sandbox --json
  {"data": [{"id", "connector", "resource", "resource_id", "name", "received_at", "signalled_at",
  "parked", "unapplied", "signed_by"}], "has_more"}`,
  show: `
Example:
  npm run -s cli -- callback show sandbox:cb_… --json
  {"id", …, "callback": {"callback_id", "occurred_at", …}}`,
  deliver: `
Safe to repeat: a callback counts once. One that was signalled is refused.

Example:
  npm run -s cli -- callback deliver sandbox:cb_… --json
  {"id", "status": "delivered" | "parked"}`,
};

interface ListOptions {
  limit: number;
  parked?: true;
  unsignalled?: true;
  connector?: string;
  resourceId?: string;
}

export function addCallbackCommands(program: Command, context: CliContext): void {
  const group = program
    .command('callback')
    .description('what banks reported and no workflow has heard of')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('list')
    .description('list callbacks that wait, the longest waiting first')
    .option('--parked', 'only those whose resource their connector does not have')
    .option('--unsignalled', 'only those that are not parked')
    .option('--connector <name>', 'only those of this bank')
    .option('--resource-id <id>', 'only those about this payment, refund or payout')
    .option('--limit <n>', `how many, 1 to ${LIMIT_MAX}`, parseLimit(LIMIT_MAX), LIMIT_DEFAULT)
    .addHelpText('after', EXAMPLES.list)
    .action((options: ListOptions) => list(context, options));
  group
    .command('show')
    .description('show one callback, also one that was signalled')
    .argument('<callback>', 'its id: connector:callback_id')
    .addHelpText('after', EXAMPLES.show)
    .action((id: string) => show(context, id));
  group
    .command('deliver')
    .description('deliver a callback that waits to its workflow')
    .argument('<callback>', 'its id: connector:callback_id')
    .addHelpText('after', EXAMPLES.deliver)
    .action((id: string) => deliver(context, id));
}

async function list(context: CliContext, options: ListOptions): Promise<void> {
  const { callbacks } = await context.stores();
  const { limit, connector, resourceId: resource_id } = options;
  const filter = { waits: waitsOf(options), connector, resource_id };
  const found = await callbacks
    .waiting(filter)
    .limit(limit + 1)
    .toArray();
  const has_more = found.length > limit;
  const data = found.slice(0, limit).map(present);
  const rows = data.map((row) => [
    row.id,
    when(row.received_at),
    row.resource,
    row.resource_id,
    row.name,
    outcomeOf(row),
  ]);
  const heading = ['CALLBACK', 'RECEIVED', 'RESOURCE', 'ID', 'SAYS', 'WAITS'];
  context.print({
    json: { data, has_more },
    text: table(heading, rows, 'No callback waits.') + (has_more ? '\n\nThere are more.' : ''),
  });
}

function waitsOf({ parked, unsignalled }: ListOptions): WaitingFilter['waits'] {
  if (parked === unsignalled) return 'any';
  return parked ? 'parked' : 'unsignalled';
}

async function show(context: CliContext, id: string): Promise<void> {
  const kept = await findCallback(await context.stores(), id);
  const row = present(kept);
  const { occurred_at, bank_reference, amount, code, reason } = kept.body;
  const currency = 'currency' in kept.body ? kept.body.currency : undefined;
  context.print({
    json: { ...row, callback: kept.body },
    text: fields([
      ['Callback', row.id],
      ['About', `${row.resource} ${row.resource_id}`],
      ['Says', row.name],
      ['Code', code ?? '-'],
      ['Reason', reason ?? '-'],
      ['Bank reference', bank_reference ?? '-'],
      ['Amount', [amount, currency].filter((word) => word !== undefined).join(' ') || '-'],
      ['Occurred', when(occurred_at)],
      ['Received', when(row.received_at)],
      ['Signed with', row.signed_by ?? '-'],
      ['Signalled', when(row.signalled_at)],
      ['Outcome', outcomeOf(row)],
    ]),
  });
}

async function deliver(context: CliContext, id: string): Promise<void> {
  const { stores, audit } = await context.acting();
  // An unknown callback is refused first, so that this works while Temporal is away.
  const { resource, resource_id, name } = await findCallback(stores, id);
  const temporal = await context.temporal();
  const found = await LIFECYCLES[resource].get(stores, resource_id);
  const { account_id = null, livemode = null } = found ?? {};
  const line = { act: 'callback.delivered', account_id, livemode, target: id } as const;
  await audit({ ...line, after: { resource, resource_id, name } });
  const status = await deliverAgain(
    { stores, temporal, now: context.now, ...context.queues() },
    id,
  );
  const text = {
    delivered: `${id} was delivered to its workflow.`,
    parked: `${id} stays parked: its connector still has no such resource.`,
  };
  context.print({ json: { id, status }, text: text[status] });
}

function present(kept: CallbackDocument) {
  const { _id: id, connector, resource, resource_id, name } = kept;
  const { received_at, signalled_at, parked, unapplied, signed_by = null } = kept;
  const about = { id, connector, resource, resource_id, name };
  return { ...about, received_at, signalled_at, parked, unapplied, signed_by };
}

function outcomeOf({ parked, unapplied, signalled_at }: ReturnType<typeof present>): string {
  if (parked !== null) return `parked: ${parked}`;
  if (unapplied !== null) return `not applied: ${unapplied}`;
  return signalled_at === null ? 'never signalled' : 'taken in';
}
