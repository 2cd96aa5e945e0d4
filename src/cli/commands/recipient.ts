import type { Command } from 'commander';
import { forgetRecipient } from '../../merchants/recipients';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { fields, when } from '../output';

const EXAMPLES = `
It can't be undone. Past payouts keep the id and the last four characters; a payout that the bank has
not been told of fails, and its money is given back. Again changes nothing.

Example:
  npm run -s cli -- recipient forget 5b0a… --json
  {"id", "account_id", "livemode", "type", "scheme", "last4", "created_at", "deleted_at"}`;

export function addRecipientCommands(program: Command, context: CliContext): void {
  program
    .command('recipient')
    .description('delete what identifies a recipient of payouts')
    .addHelpText('after', EXAMPLES)
    .command('forget')
    .description('delete the details of a recipient for good')
    .argument('<recipient_id>')
    .addHelpText('after', EXAMPLES)
    .action((id: string) => forget(context, id));
}

async function forget(context: CliContext, id: string): Promise<void> {
  const deleted = await forgetRecipient(await context.acting(), id);
  if (deleted === null) {
    throw new CliFailure('recipient_not_found', `There is no recipient ${id}.`);
  }
  const { account_id, livemode, type, scheme, last4, created_at, deleted_at = null } = deleted;
  const text = fields([
    ['Recipient', id],
    ['Account', account_id],
    ['Environment', livemode ? 'live' : 'sandbox'],
    ['Was', `${type} ${scheme === null ? '' : `${scheme} `}…${last4}`],
    ['Created', when(created_at)],
    ['Deleted', when(deleted_at)],
  ]);
  const json = { id, account_id, livemode, type, scheme, last4, created_at, deleted_at };
  context.print({ json, text });
}
