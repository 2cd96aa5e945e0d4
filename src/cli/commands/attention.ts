import { z } from 'zod';
import {
  acknowledgeAttention,
  acknowledgeOfBankAccount,
  isOfBankAccount,
  listAttention,
} from '../../service/operators/attention';
import { getSystemUser } from '../../service/operators/deps';
import { defineCommand, defineGroup } from '../command';
import { limit, Operator, Reason, textOption } from '../options';
import { formatTime, printFields, printList } from '../output';

const list = defineCommand({
  name: 'list',
  description: 'list the attention reasons of all resources, the oldest first',
  options: z.object({
    all: z.boolean().default(false).describe('also those that were acknowledged'),
    limit: limit(1_000, 100),
    after: textOption('continue a list at its next_cursor', 'cursor').optional(),
  }),
  example: 'attention list --limit 10',
  run: async (context, query) => {
    const { stores } = await context.readDeps();
    printList(context, {
      ...(await listAttention(stores, { ...query, now: context.now() })),
      cursorOption: '--after',
      present: (row) => row,
      columns: ['ATTENTION', 'SINCE', 'REASON', 'AMOUNT', 'CURRENCY', 'ACKNOWLEDGED'],
      cells: ({ id, since, reason, amount, currency, acknowledged }) => [
        id,
        formatTime(since),
        reason,
        String(amount),
        currency,
        acknowledged ? 'yes' : 'no',
      ],
      none: 'Nothing needs an operator.',
    });
  },
});

const acknowledge = defineCommand({
  name: 'acknowledge',
  description: 'take one off the list and out of the metrics; the audit trail records it',
  options: z.object({
    id: z
      .string()
      .describe('its id, as the list prints it')
      .meta({ argument: true, placeholder: 'attention' }),
    reason: Reason,
    operator: Operator.optional().describe('who does it; by default the system user'),
  }),
  notes: `
If the same reason comes again, it needs an operator again. A reason whose money is in suspense is refused.`,
  example: 'attention acknowledge payment:0d1f…:1764… --reason "Ticket 42: the bank released it"',
  run: async (context, { id, reason, operator }) => {
    const by = getSystemUser();
    const act = { operator: operator ?? by.system_user, reason, by };
    const { resource, resource_id, ...done } = isOfBankAccount(id)
      ? await acknowledgeOfBankAccount(await context.actingDeps(), id, act)
      : await acknowledgeAttention(await context.withTemporal(await context.readDeps()), id, act);
    const json = { id, resource, resource_id, ...done, acknowledged: true };
    printFields(context, { json }, [
      ['Acknowledged', done.reason],
      ['Resource', `${resource} ${resource_id}`],
    ]);
  },
});

export const attentionCommands = defineGroup({
  name: 'attention',
  description: 'what needs an operator, and acknowledging it',
  commands: [list, acknowledge],
});
