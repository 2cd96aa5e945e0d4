import { z } from 'zod';
import { isLive } from '../../domain/environment';
import { formatMoney } from '../../domain/money';
import { isDay } from '../../domain/shape';
import { combine, reconcileAccounts } from '../../service/banks/statements/reconciliation';
import { defineCommand, defineGroup } from '../command';
import { Env } from '../options';
import { fields, table } from '../output';
import { Account, Connector, formatBoolean, formatEntries, formatLines } from './statement-output';

const reconcile = defineCommand({
  name: 'show',
  description: "show what a day has on one side only: on the bank's statement, or in the ledger",
  options: z.object({
    connector: Connector,
    env: Env,
    account: Account,
    date: z
      .string()
      .refine(isDay, 'It must be a day, such as 2026-11-20.')
      .optional()
      .describe('which day; by default the latest with a statement')
      .meta({ placeholder: 'day' }),
  }),
  notes: `
First it matches open lines with entries that came since, and closes days that have nothing open. Of
several accounts it shows all rows together, and each account under "accounts".`,
  example: 'reconciliation show --connector sandbox --env sandbox',
  run: async (context, { connector, env, account: iban, date: day }) => {
    const query = { connector, livemode: isLive(env), iban, day };
    const each = await reconcileAccounts(await context.readDeps(), query);
    const text = each.map(formatReconciliation).join('\n\n');
    context.print({ json: combine(each), text });
  },
});

function formatReconciliation(shown: Awaited<ReturnType<typeof reconcileAccounts>>[number]) {
  const balance = (amount: number | null) =>
    amount === null ? '-' : formatMoney(amount, shown.currency);
  const { ours_only, theirs_only, different, findings } = shown;
  const section = (title: string, count: number, text: string) =>
    count === 0 ? [] : [`${title}:\n${text}`];
  const pairs = different.map(({ line, entry }) => [
    ...[line.id, balance(line.amount), entry.entry_id, balance(entry.amount)],
  ]);
  return [
    fields([
      ['Account', `${shown.account} ${shown.currency}`],
      ['Day', shown.day ?? '-'],
      ['Closed', formatBoolean(shown.closed)],
      ['Opening', balance(shown.opening)],
      ['Closing', balance(shown.closing)],
      ['Matched', String(shown.matched)],
    ]),
    ...section('Only in the ledger', ours_only.length, formatEntries(ours_only)),
    ...section('Only on the statement', theirs_only.length, formatLines(theirs_only)),
    ...section(
      'Different amounts',
      pairs.length,
      table(['LINE', 'HAS', 'ENTRY', 'HAS'], pairs, ''),
    ),
    ...findings.map(({ message }) => message),
    ...(shown.has_more ? ['There are more.'] : []),
  ].join('\n\n');
}

export const reconciliationCommands = defineGroup({
  name: 'reconciliation',
  description: "the bank's statements against the ledger, day by day",
  commands: [reconcile],
});
