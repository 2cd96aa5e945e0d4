import { z } from 'zod';
import { ServiceError } from '../../domain/errors';
import { eraseRecipient } from '../../service/money/recipients';
import { defineCommand, defineGroup } from '../command';
import { formatTime, printFields } from '../output';

const erase = defineCommand({
  name: 'forget',
  description: 'erase the details of a recipient for good; again changes nothing',
  options: z.object({ recipient_id: z.string().meta({ argument: true }) }),
  notes: `
It cannot be undone. Past payouts keep the id and the last four characters; a payout that no bank has yet
fails, and its amount is returned to the balance.`,
  example: 'recipient forget 5b0a…',
  run: async (context, { recipient_id: id }) => {
    const recipient = await eraseRecipient(await context.actingDeps(), id);
    if (recipient === null) {
      throw new ServiceError('recipient_not_found', `There is no recipient ${id}.`);
    }
    const { account_id, livemode, type, scheme, last4, created_at, deleted_at = null } = recipient;
    const json = { id, account_id, livemode, type, scheme, last4, created_at, deleted_at };
    printFields(context, { json }, [
      ['Recipient', id],
      ['Account', account_id],
      ['Environment', livemode ? 'live' : 'sandbox'],
      ['Was', `${type} ${scheme === null ? '' : `${scheme} `}…${last4}`],
      ['Created', formatTime(created_at)],
      ['Deleted', formatTime(deleted_at)],
    ]);
  },
});

export const recipientCommands = defineGroup({
  name: 'recipient',
  description: 'erase what identifies a recipient of payouts',
  commands: [erase],
});
