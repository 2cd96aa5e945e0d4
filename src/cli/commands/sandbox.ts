import { z } from 'zod';
import { formatCount } from '../../domain/format-count';
import { formatMoney } from '../../domain/money';
import { registerSandboxAccounts } from '../../service/banks/sandbox-bank/accounts';
import { writeDayStatements } from '../../service/banks/sandbox-bank/statements';
import { defineCommand, defineGroup } from '../command';
import { printList } from '../output';

const statement = defineCommand({
  name: 'statement',
  description: 'write the statements of the sandbox bank up to now, and print the files of a day',
  options: z.object({
    date: z.iso
      .date('A day is written YYYY-MM-DD.')
      .optional()
      .meta({ description: 'the day (UTC), today by default', placeholder: 'day' }),
  }),
  notes: `
A camt.053 for each account and day, in DATA_DIR/statements. The first one that is written begins where the last
one ended; days that were missed are made up. Again without a new movement prints the same files.`,
  example: 'sandbox statement --date 2026-11-22',
  run: async (context, { date }) => {
    const deps = await context.actingDeps();
    const { mongodb, dataDir } = context.settings();
    const day = date ?? context.now().toISOString().slice(0, 10);
    const rows = await writeDayStatements({ ...deps, database: mongodb.db, dataDir }, day);
    await registerSandboxAccounts(
      deps,
      rows.map(({ currency }) => currency),
    );
    printList(context, {
      rows,
      present: (row) => row,
      columns: ['FILE', 'ACCOUNT', 'LINES', 'CLOSING BALANCE'],
      cells: ({ file, account, lines, closing, currency }) => [
        ...[file, account, formatCount(lines, 'line'), formatMoney(closing, currency)],
      ],
      none: `The sandbox bank moved no money until the end of ${day}.`,
    });
  },
});

export const sandboxCommands = defineGroup({
  name: 'sandbox',
  description: 'the sandbox bank',
  commands: [statement],
});
