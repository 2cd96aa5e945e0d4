import { z } from 'zod';
import { isLive } from '../../domain/environment';
import { formatMoney } from '../../domain/money';
import { isDay } from '../../domain/shape';
import { type ImportedStatement, importStatementPath } from '../../service/statements/import';
import {
  assignLine,
  DIFFERENCE_ACCOUNTS,
  isLiveLine,
  type LineAct,
  listStatements,
  matchByHand,
  showStatement,
  unmatchByHand,
} from '../../service/statements/lines';
import {
  presentLine,
  presentStatement,
  type ShownEntry,
  type ShownLine,
} from '../../service/statements/present';
import { combine, reconcileAccounts } from '../../service/statements/reconciliation';
import { identifyOperator } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import type { CliContext } from '../context';
import { Env, limit, Operator, Reason, textOption } from '../options';
import { fields, printFields, printList, table } from '../output';

const Connector = textOption('the connector of the bank', 'name');
const Account = textOption('IBAN of one account', 'iban').optional();
const LineId = z
  .string()
  .describe('id of the line')
  .meta({ argument: true, placeholder: 'line_id' });
const WHO = { operator: Operator.optional(), reason: Reason.optional() };
const ON_LIVE = 'On live it needs OPERATOR_KEY and --reason.';

const importFile = defineCommand({
  name: 'import',
  description: 'import the statements of a file, and match their lines; again adds nothing',
  options: z.object({
    file: z.string().describe('camt.053, camt.054 or CSV').meta({ argument: true }),
    connector: Connector,
    env: Env,
  }),
  notes: `
A file of at most 64 MiB is imported as a whole or refused. After an interruption, import it again. A file
with several statements prints them under "data".`,
  example: 'statement import camt053.xml --connector sandbox --env sandbox',
  run: async (context, { file, connector, env }) => {
    const deps = await context.actingDeps();
    const source = { connector, livemode: isLive(env) };
    const imported = await importStatementPath(deps, file, source);
    const [only, ...more] = imported;
    const json = more.length === 0 ? only : { data: imported };
    context.print({ json, text: imported.map(formatImport).join('\n\n') });
  },
});

function formatImport(row: ImportedStatement): string {
  return fields([
    ['Statement', `${row.statement_id} (${row.id})`],
    ['Account', row.account],
    ['Day', row.day],
    ['Lines', String(row.lines)],
    ['Matched', String(row.matched)],
    ['Booked', String(row.booked)],
    ['Open', String(row.open)],
    ['Imported', row.already_imported ? 'before' : 'now'],
  ]);
}

const list = defineCommand({
  name: 'list',
  description: 'list the imported statements, the latest day first',
  options: z.object({
    connector: Connector.optional(),
    env: Env.optional(),
    account: Account,
    limit: limit(1_000, 100),
  }),
  example: 'statement list --connector sandbox --env sandbox',
  run: async (context, { connector, env, account: iban, limit: count }) => {
    const livemode = env === undefined ? undefined : isLive(env);
    const page = await listStatements(
      await context.readDeps(),
      { connector, livemode, iban },
      count,
    );
    printList(context, {
      ...page,
      present: presentStatement,
      columns: ['STATEMENT', 'ID', 'ACCOUNT', 'DAY', 'CURRENCY', 'LINES', 'CLOSED'],
      cells: (row) => [
        ...[row.statement_id, row.id, row.account, row.day, row.currency, String(row.lines)],
        row.complete ? formatBoolean(row.closed) : 'incomplete',
      ],
      none: 'No statement was imported.',
    });
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show a statement and its lines',
  options: z.object({
    id: z.string().describe("its id, or the bank's").meta({ argument: true }),
    status: z
      .enum(['matched', 'booked', 'open', 'announced', 'repeated'])
      .optional()
      .describe('only these lines')
      .meta({ placeholder: 'status' }),
    limit: limit(100_000, 1_000),
  }),
  example: 'statement show st_… --status open',
  run: async (context, { id, ...query }) => {
    const { statement, lines } = await showStatement(await context.readDeps(), id, query);
    const json = presentStatement(statement);
    const rows = lines.rows.map((line) => presentLine(line, context.now()));
    const { opening, closing, currency } = json;
    const balance = (amount: number | null) =>
      amount === null ? '-' : formatMoney(amount, currency);
    const head = fields([
      ['Statement', `${json.statement_id} (${json.id})`],
      ['Account', `${json.account}, ${json.connector}, ${json.env}`],
      ['Days', `${json.from_day} to ${json.day}`],
      ['Opening', balance(opening)],
      ['Closing', balance(closing)],
      ['Closed', formatBoolean(json.closed)],
    ]);
    const more = lines.has_more ? '\n\nThere are more.' : '';
    context.print({
      json: { ...json, data: rows, has_more: lines.has_more },
      text: `${head}\n\n${formatLines(rows)}${more}`,
    });
  },
});

const match = defineCommand({
  name: 'match',
  description: 'match an open line with journal entries whose sum is its amount',
  options: z.object({
    line_id: LineId,
    entry_ids: z
      .array(z.string())
      .default([])
      .describe('ids of entries')
      .meta({ argument: true, placeholder: 'entry_id' }),
    difference_to: z
      .enum(DIFFERENCE_ACCOUNTS)
      .optional()
      .describe('where the difference goes')
      .meta({ placeholder: 'account' }),
    ...WHO,
  }),
  notes: `
\`reconciliation show\` lists the entries that wait for a line. Without any, --difference-to
expense.bank_fees books the whole line as a charge. ${ON_LIVE}`,
  example: 'statement match st_…:3 payment_settled:0d1f… --operator mia --reason "Ticket 42"',
  run: async (context, { line_id, entry_ids: entries, difference_to, ...who }) => {
    const deps = await context.actingDeps();
    const act = await identify(context, line_id, who);
    const line = await matchByHand(deps, line_id, { entries, difference_to, ...act });
    printLine(context, presentLine(line, context.now()));
  },
});

const unmatch = defineCommand({
  name: 'unmatch',
  description: 'undo the match of a line, which is open again and matched by operators only',
  options: z.object({ line_id: LineId, ...WHO }),
  notes: ON_LIVE,
  example: 'statement unmatch st_…:3 --operator mia --reason "Ticket 42"',
  run: async (context, { line_id, ...who }) => {
    const act = await identify(context, line_id, who);
    const line = await unmatchByHand(await context.actingDeps(), line_id, act);
    printLine(context, presentLine(line, context.now()));
  },
});

const assign = defineCommand({
  name: 'assign',
  description: 'say who looks after a line',
  options: z.object({ line_id: LineId, owner: textOption('who', 'name').max(100), ...WHO }),
  notes: 'On live, --operator and --reason are required.',
  example: 'statement assign st_…:3 --owner mia',
  run: async (context, { line_id, owner, ...who }) => {
    const line = await assignLine(await context.actingDeps(), line_id, owner, who);
    printLine(context, presentLine(line, context.now()));
  },
});

/** Names the operator, on live by the key. */
async function identify(
  context: CliContext,
  line_id: string,
  { operator: typed, reason }: LineAct,
): Promise<LineAct> {
  const livemode = await isLiveLine(await context.readDeps(), line_id);
  const { operator } = await identifyOperator(context, { livemode, operator: typed });
  return { operator, reason };
}

function printLine(context: CliContext, line: ShownLine): void {
  printFields(context, { json: line }, [
    ['Line', line.id],
    ['Amount', formatMoney(line.amount, line.currency)],
    ['Status', line.status],
    ['Entries', line.entries.join(', ') || '-'],
    ['In suspense', formatMoney(line.unmatched, line.currency)],
    ['Owner', line.owner ?? '-'],
  ]);
}

function formatBoolean(value: boolean): string {
  return value ? 'yes' : 'no';
}

const LINE_COLUMNS = ['LINE', 'DAY', 'AMOUNT', 'REFERENCE', 'BANK REFERENCE', 'STATUS', 'OWNER'];

function formatLines(lines: readonly ShownLine[], none = 'It has no such lines.'): string {
  const rows = lines.map((line) => [
    ...[line.id, line.day, formatMoney(line.amount, line.currency), line.reference ?? '-'],
    ...[line.bank_reference ?? '-', line.status, line.owner ?? '-'],
  ]);
  return table(LINE_COLUMNS, rows, none);
}

function formatEntries(entries: readonly ShownEntry[]): string {
  const rows = entries.map(({ entry_id, day, amount, currency, age_days }) => [
    entry_id,
    day,
    formatMoney(amount, currency),
    `${age_days} d`,
  ]);
  return table(['ENTRY', 'DAY', 'AMOUNT', 'AGE'], rows, '');
}

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

export const statementCommands = defineGroup({
  name: 'statement',
  description: 'statements of banks: importing them, and matching their lines',
  commands: [importFile, list, show, match, unmatch, assign],
});

export const reconciliationCommands = defineGroup({
  name: 'reconciliation',
  description: "the bank's statements against the ledger, day by day",
  commands: [reconcile],
});
