import { Argument, type Command } from 'commander';
import type { CallbackResource } from '../../domain/callback';
import { defined } from '../../domain/defined';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import { actOn } from '../act';
import { assertApproved } from '../approval';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import {
  approvedByOption,
  operatorOption,
  parseAmount,
  parseHours,
  reasonOption,
} from '../options';
import { fields } from '../output';
import { readPage } from '../resource-page';
import { pageText } from '../resource-text';
import { findResource } from '../resources';
import { systemUser } from '../system-user';

interface ActOptions {
  operator: string;
  reason: string;
  hours?: number;
  amount?: number;
  approvedBy?: string;
}

/** Adds the commands of `payment`, `refund` and `payout`, which are alike. */
export function addResourceCommands(program: Command, context: CliContext): void {
  for (const kind of KINDS) addGroup(program, context, kind);
}

function addGroup(program: Command, context: CliContext, kind: CallbackResource): void {
  const { acts } = LIFECYCLES[kind];
  const id = `<${kind}_id>`;
  const name = commandOf(kind);
  const act = `npm run -s cli -- ${name} act 0d1f… ${acts[0]} --operator mia --reason "Ticket 42"`;
  const group = program
    .command(name)
    .description(`see one ${nounOf(kind)}, and act on it`)
    .addHelpText('after', `\nExamples:\n  npm run -s cli -- ${name} show 0d1f…\n  ${act}`);
  group
    .command('show')
    .description(
      `show all that is stored of a ${nounOf(kind)}: moves, ledger, callbacks, audit trail`,
    )
    .argument(id)
    .addHelpText('after', showExample(kind))
    .action((of: string) => show(context, kind, of));
  group
    .command('act')
    .description(
      `do to a ${nounOf(kind)} what its workflow lets operators do; kept in the audit trail`,
    )
    .argument(id)
    .addArgument(new Argument('<act>', 'what to do').choices([...acts]))
    .addOption(operatorOption().makeOptionMandatory())
    .addOption(reasonOption().makeOptionMandatory())
    .option('--hours <n>', 'of a snooze: how long, up to 720', parseHours)
    .option('--amount <minor>', 'what really moved, where that is not what was asked', parseAmount)
    .addOption(approvedByOption())
    .addHelpText('after', actHelp(kind, act))
    .action((of: string, what: string, options: ActOptions) =>
      sendAct(context, kind, of, what, options),
    );
}

/** Group of a kind of resource, such as `crypto-payment`. */
function commandOf(kind: CallbackResource): string {
  return kind.replace('_', '-');
}

/** Name of a kind of resource in a sentence. */
function nounOf(kind: CallbackResource): string {
  return kind.replace('_', ' ');
}

/** Parts of a page beside those that all have. */
const MORE: Partial<Record<CallbackResource, string>> = {
  payment: '"refunds", ',
  payout: '"recipient", ',
};

function showExample(kind: CallbackResource): string {
  const more = MORE[kind] ?? '';
  return `
Details of customers and recipients are left out; texts of merchants and banks are shown.

Example:
  npm run -s cli -- ${commandOf(kind)} show 0d1f… --json
  {"${kind}", ${more}"events", "postings", "callbacks", "audit"}`;
}

function actHelp(kind: CallbackResource, example: string): string {
  const bank = kind === 'payout' ? ', "bank"' : '';
  return `
The workflow decides, and refuses in words what the state does not allow. One that was terminated is
started again for it.

Example:
  ${example} --json
  {"${kind}_id", "status", "version"${bank}, "attention"}`;
}

async function show(context: CliContext, kind: CallbackResource, id: string): Promise<void> {
  const page = await readPage(await context.stores(), kind, id);
  const { resource, ...rest } = page;
  context.print({ json: { [kind]: resource, ...rest }, text: pageText(page) });
}

async function sendAct(
  context: CliContext,
  kind: CallbackResource,
  id: string,
  what: string,
  { operator, reason, hours, amount, approvedBy }: ActOptions,
): Promise<void> {
  if ((what === 'snooze') !== (hours !== undefined)) {
    throw new CliFailure('invalid_usage', 'A snooze, and nothing else, takes --hours.');
  }
  const stores = await context.stores();
  const { get } = LIFECYCLES[kind];
  if (what === 'mark_settled') {
    const found = await findResource(stores, kind, id);
    const asked = { ...found, amount: amount ?? Number(found.amount), operator, approvedBy };
    assertApproved(context.settings().creditLimit, asked);
  }
  const deps = { stores, temporal: await context.temporal(), ...context.queues() };
  const { system_user, host } = systemUser();
  const by = { system_user, host };
  const act = defined({ what, operator, reason, hours, amount, approved_by: approvedBy, by });
  const { status, version, bank } = await actOn(deps, kind, id, act);
  const attention = (await get(stores, id))?.attention ?? null;
  context.print({
    json: defined({ [`${kind}_id`]: id, status, version, bank, attention }),
    text: fields([
      ['Done', what],
      ['Status', status],
      ['Version', String(version)],
      ...(bank === undefined ? [] : ([['Bank', bank]] as const)),
      ['Attention', attention ?? '-'],
    ]),
  });
}
