import { z } from 'zod';
import { formatCount } from '../../domain/counted';
import { ServiceError } from '../../domain/errors';
import { CHECKS, checkLedger, type Verification } from '../../service/ledger';
import { defineCommand, defineGroup } from '../command';
import { fields, table } from '../output';

const verify = defineCommand({
  name: 'verify',
  description: 'recompute every balance from its journal entries, and report what differs',
  options: z.object({
    full: z.boolean().default(false).describe('read everything behind the checkpoints again, too'),
    book: z.string().optional().describe('check one book and the resources of its journal entries'),
  }),
  notes: `
Checks:
${fields(Object.entries(CHECKS)).replace(/^/gm, '  ')}

It reads what is new since its last run and writes checkpoints; the service may run meanwhile. Exit code 1
when there are differences, of which the first 100 are listed.`,
  example: 'ledger verify --full',
  run: async (context, options) => {
    const { now, progress } = context;
    const { db } = context.settings().mongodb;
    const client = await context.longReader();
    const data = await checkLedger(client, db, { ...options, now, progress });
    context.print({ json: { data }, text: report(data) });
    const { differences_total: total } = data;
    if (total === 0) return;
    throw new ServiceError('ledger_differs', `The ledger has ${formatCount(total, 'difference')}.`);
  },
});

function report({ books, postings, differences, differences_total }: Verification): string {
  const scope = `${formatCount(postings, 'posting')} in ${formatCount(books, 'book')}`;
  if (differences_total === 0) return `${scope}: nothing differs.`;
  const rows = differences.map(({ check, subject, part, expected, found }) =>
    [check, subject, part, expected, found].map((cell) => String(cell ?? '-')),
  );
  const heading = ['CHECK', 'SUBJECT', 'PART', 'EXPECTED', 'FOUND'];
  const more = differences_total - differences.length;
  return (
    `${scope}: ${formatCount(differences_total, 'difference')}.\n\n` +
    table(heading, rows, '') +
    (more > 0 ? `\n\nThere are ${more} more.` : '')
  );
}

export const ledgerCommands = defineGroup({
  name: 'ledger',
  description: 'the double-entry ledger behind the balances',
  commands: [verify],
});
