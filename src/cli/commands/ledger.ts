import type { Command } from 'commander';
import { counted } from '../../domain/counted';
import { defined } from '../../domain/defined';
import { CHECKS } from '../../ledger/verify/compare';
import { type Verification, type VerifyOptions, verifyLedger } from '../../ledger/verify/verify';
import { createLedgerCheckStore } from '../../store/ledger-checks';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { fields, table } from '../output';

const EXAMPLES = {
  group: `
Example:
  npm run -s cli -- ledger verify`,
  verify: `
What it looks for:
${fields(Object.entries(CHECKS)).replace(/^/gm, '  ')}

It reads what is new since its last run, and seals it with checkpoints; --full reads everything again.
The service may be at work meanwhile. The first 100 differences are listed; all are counted. Exit
code 1 when there are any.

Example:
  npm run -s cli -- ledger verify --full
  npm run -s cli -- ledger verify --book acct_…:live:EUR
  npm run -s cli -- ledger verify --json
  {"data": {"books", "postings", "differences": [{"check", "subject", "part", "expected", "found"}],
  "differences_total", "checkpoints_sealed"}}`,
};

export function addLedgerCommands(program: Command, context: CliContext): void {
  const group = program
    .command('ledger')
    .description('the double-entry ledger behind the balances')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('verify')
    .description('recompute every balance from its postings, and say what differs')
    .option('--full', 'read everything behind the checkpoints again, too')
    .option('--book <book>', 'look at one book and the resources of its postings')
    .addHelpText('after', EXAMPLES.verify)
    .action((options: VerifyOptions) => verify(context, options));
}

async function verify(context: CliContext, { full, book }: VerifyOptions): Promise<void> {
  const data = await verifyLedger(await context.longReader(), context.settings().mongodb.db, {
    ...defined({ full, book }),
    now: context.now,
    progress: context.progress,
  });
  if (book !== undefined && data.books + data.postings === 0) {
    throw new CliFailure('book_not_found', `There is no book ${book}, and no posting in it.`);
  }
  if (book === undefined) await noteCheck(context, data);
  context.print({ json: { data }, text: report(data) });
  const { differences_total: total } = data;
  if (total === 0) return;
  // The report is printed already; this sets the exit code to 1.
  throw new CliFailure('ledger_differs', `The ledger has ${counted(total, 'difference')}.`);
}

/** Keeps when all books were looked at, for the worker's figures. */
async function noteCheck(context: CliContext, { differences_total }: Verification): Promise<void> {
  const db = (await context.mongo()).db(context.settings().mongodb.db);
  await createLedgerCheckStore(db).note(context.now().toISOString(), differences_total);
}

function report({ books, postings, differences, differences_total }: Verification): string {
  const scope = `${counted(postings, 'posting')} in ${counted(books, 'book')}`;
  if (differences_total === 0) return `${scope}: nothing differs.`;
  const rows = differences.map(({ check, subject, part, expected, found }) =>
    [check, subject, part, expected, found].map((cell) => String(cell ?? '-')),
  );
  const heading = ['CHECK', 'SUBJECT', 'PART', 'EXPECTED', 'FOUND'];
  const more = differences_total - differences.length;
  return (
    `${scope}: ${counted(differences_total, 'difference')}.\n\n` +
    table(heading, rows, '') +
    (more > 0 ? `\n\nThere are ${more} more.` : '')
  );
}
