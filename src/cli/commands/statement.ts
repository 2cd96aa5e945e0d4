import { z } from 'zod';
import { omitUndefined } from '../../domain/defined';
import { isLive } from '../../domain/environment';
import { formatMoney } from '../../domain/money/money';
import { isApprovalRequired } from '../../domain/operators/approval';
import { type CheckedStatement, checkStatementPath } from '../../service/banks/statements/check';
import {
  abandonStatement,
  type ImportedStatement,
  importMade,
  importStatementPath,
  throwRefusals,
} from '../../service/banks/statements/import';
import {
  assignLine,
  clearEntries,
  DIFFERENCE_ACCOUNTS,
  isLiveClearing,
  isLiveLine,
  type LineAct,
  listContents,
  listStatements,
  matchByHand,
  showStatement,
  unmatchByHand,
} from '../../service/banks/statements/lines';
import type { SetAside } from '../../service/banks/statements/plan';
import {
  presentEntry,
  presentLine,
  presentStatement,
  type ShownEntry,
  type ShownLine,
} from '../../service/banks/statements/reconciliation';
import { openNoted, printApprovalRequired } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import type { CliContext } from '../context';
import {
  Connector,
  Env,
  Id,
  limit,
  NOTED,
  ON_LIVE,
  Operator,
  Reason,
  textOption,
} from '../options';
import { fields, formatTime, printFields, printList, table } from '../output';

export const Account = textOption('one account, by its IBAN or id', 'account').optional();

export function formatBoolean(value: boolean): string {
  return value ? 'yes' : 'no';
}

const LINE_COLUMNS = ['LINE', 'DAY', 'AMOUNT', 'REFERENCE', 'BANK REFERENCE', 'STATUS', 'OWNER'];

export function formatLines(lines: readonly ShownLine[], none = 'It has no such lines.'): string {
  const rows = lines.map((line) => [
    ...[line.id, line.day, formatMoney(line.amount, line.currency), line.reference ?? '-'],
    ...[line.bank_reference ?? '-', line.status, line.owner ?? '-'],
  ]);
  return table(LINE_COLUMNS, rows, none);
}

export function formatEntries(entries: readonly ShownEntry[]): string {
  const rows = entries.map(({ entry_id, day, amount, currency, age_days }) => [
    entry_id,
    day,
    formatMoney(amount, currency),
    `${age_days} d`,
  ]);
  return table(['ENTRY', 'DAY', 'AMOUNT', 'AGE'], rows, '');
}

const LineId = Id.describe('id of the line').meta({ argument: true, placeholder: 'line_id' });

const FILE = {
  file: z.string().describe('camt.053, camt.054 or CSV').meta({ argument: true }),
  connector: Connector,
  env: Env,
};

/** Prints one statement as it is, and of several files or accounts those set aside, too. */
function printFile<Row extends ImportedStatement | CheckedStatement>(
  context: CliContext,
  { statements, set_aside }: { statements: readonly Row[]; set_aside: readonly SetAside[] },
  listFields: (row: Row) => Parameters<typeof fields>[0],
): void {
  const [only, ...more] = statements;
  const isOne = more.length === 0 && set_aside.length === 0;
  const texts = statements.map((row) =>
    fields([
      ['Statement', row.statement_id],
      ['Account', row.account],
      ['Day', row.day],
      ['Lines', String(row.lines)],
      ...listFields(row),
      ['Notice', row.notice],
    ]),
  );
  const others = set_aside.map(
    ({ account, statement_id }) =>
      `Set aside: statement ${statement_id} of ${account}, which is not registered.`,
  );
  const text = [...texts, ...others].join('\n\n') || 'Nothing new.';
  context.print({ json: isOne ? only : { data: statements, set_aside }, text });
}

const importFile = defineCommand({
  name: 'import',
  description: 'import the statements of a file, and match their lines; again adds nothing',
  options: z.object({ ...FILE, file: FILE.file.optional() }),
  notes: `
Without FILE it imports what the connector itself has made of a balance, as that of Stripe does: run it every hour. A file has at most 64 MiB. The statements of each account in it are imported, or refused, together; those of accounts that
are not registered are set aside: register them, and import the file again, as after an interruption. A file with
several statements prints them under "data".`,
  example: 'statement import camt053.xml --connector sandbox --env sandbox',
  run: async (context, { file, connector, env }) => {
    const deps = await context.actingDeps();
    const source = { connector, livemode: isLive(env) };
    const imported =
      file === undefined
        ? await importMade(deps, source)
        : await importStatementPath(deps, file, source);
    printFile(context, imported, (row) => [
      ['Id', row.id],
      ['Matched', String(row.matched)],
      ['Booked', String(row.booked)],
      ['Open', String(row.open)],
      ['Imported', row.already_imported ? 'before' : 'now'],
    ]);
  },
});

const check = defineCommand({
  name: 'check',
  description: 'say what an import of a file would do; stores nothing',
  options: z.object(FILE),
  notes: 'It ends as the import would. Run it before the first file of a bank.',
  example: 'statement check camt053.xml --connector sandbox --env sandbox',
  run: async (context, { file, connector, env }) => {
    const source = { connector, livemode: isLive(env) };
    const checked = await checkStatementPath(await context.readDeps(), file, source);
    printFile(context, checked, (row) => [
      ['Would match', String(row.would_match)],
      ['Would book', String(row.would_book)],
      ['Would refuse', row.would_refuse?.message],
      ['Open', String(row.open)],
      ['Imported', row.already_imported ? 'before' : undefined],
    ]);
    throwRefusals(checked.refusals);
  },
});

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
    const query = { connector, livemode: env && isLive(env), iban };
    printList(context, {
      ...(await listStatements(await context.readDeps(), query, count)),
      present: presentStatement,
      columns: {
        STATEMENT: 'statement_id',
        ID: 'id',
        ACCOUNT: 'account',
        DAY: 'day',
        CURRENCY: 'currency',
        LINES: 'lines',
        CLOSED: ({ abandoned_at, complete, closed }) => {
          if (abandoned_at !== undefined) return 'abandoned';
          return complete ? formatBoolean(closed) : 'incomplete';
        },
      },
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
      .enum(['matched', 'booked', 'open', 'announced', 'repeated', 'abandoned'])
      .optional()
      .describe('only these lines')
      .meta({ placeholder: 'status' }),
    limit: limit(100_000, 1_000),
  }),
  example: 'statement show st_… --status open',
  run: async (context, { id, ...query }) => {
    const deps = await context.readDeps();
    const { statement, lines } = await showStatement(deps, id, query);
    const contents = await listContents(deps, statement.connector, lines.rows);
    const json = presentStatement(statement);
    const rows = lines.rows.map((line) => {
      const contains = contents.get(line.bank_reference ?? '');
      return { ...presentLine(line, context.now()), ...omitUndefined({ contains }) };
    });
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
    const contained = rows.map(({ contains, bank_reference }) =>
      contains === undefined ? '' : `\n\n${bank_reference} contains ${contains.join(' ')}`,
    );
    context.print({
      json: { ...json, data: rows, has_more: lines.has_more },
      text: `${head}\n\n${formatLines(rows)}${more}${contained.join('')}`,
    });
  },
});

const abandon = defineCommand({
  name: 'abandon',
  description: 'give up an import that was interrupted, so that its account takes other statements',
  options: z.object({
    id: z.string().describe("its id, or the bank's").meta({ argument: true }),
    reason: Reason,
    operator: Operator.optional(),
  }),
  notes: `
If you have its file, import that again instead. The lines that are stored are reversed in the bank's book, and their
entries wait for a line again; the statement can still be imported. On live it needs OPERATOR_KEY.`,
  example: 'statement abandon st_… --reason "Ticket 42: the file is lost"',
  run: async (context, { id, ...who }) => {
    const { statement } = await showStatement(await context.readDeps(), id, { limit: 1 });
    const { deps, note } = await openNoted(context, statement, who);
    const json = presentStatement(await abandonStatement(deps, id, note));
    printFields(context, { json }, [
      ['Statement', `${json.statement_id} (${json.id})`],
      ['Abandoned', formatTime(json.abandoned_at ?? '')],
    ]);
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
    ...NOTED,
  }),
  notes: `
\`reconciliation show\` lists the entries that wait for a line. Without any, --difference-to
expense.bank_fees books the whole line as a charge. ${ON_LIVE}
What it books as a charge counts as yours: above APPROVAL_LIMIT a second operator approves it.`,
  example: 'statement match st_…:3 payment_settled:0d1f… --operator mia --reason "Ticket 42"',
  run: async (context, { line_id, entry_ids: entries, difference_to, ...who }) => {
    const { deps, note, approval } = await openLine(context, line_id, who);
    const line = await matchByHand(deps, line_id, { entries, difference_to, ...note }, approval);
    if (isApprovalRequired(line)) return printApprovalRequired(context, line);
    printLine(context, presentLine(line, context.now()));
  },
});

const unmatch = defineCommand({
  name: 'unmatch',
  description: 'undo the match of a line, which is open again and matched by operators only',
  options: z.object({ line_id: LineId, ...NOTED }),
  notes: ON_LIVE,
  example: 'statement unmatch st_…:3 --operator mia --reason "Ticket 42"',
  run: async (context, { line_id, ...who }) => {
    const { deps, note } = await openLine(context, line_id, who);
    const line = await unmatchByHand(deps, line_id, note);
    printLine(context, presentLine(line, context.now()));
  },
});

const clear = defineCommand({
  name: 'clear',
  description: 'clear entries that cancel each other, and that no statement will have',
  options: z.object({
    entry_ids: z
      .array(z.string())
      .min(2, 'Name two entries or more that cancel each other.')
      .describe('ids of entries')
      .meta({ argument: true, placeholder: 'entry_id' }),
    ...NOTED,
  }),
  notes: `
For what never moved at the bank, such as a payout that was posted and failed before it left. The entries are of
one connector, environment and currency, sum to zero, and wait for a line. ${ON_LIVE}
Above APPROVAL_LIMIT a second operator approves it.`,
  example: 'statement clear payout_captured:0d1f… payout_reversed:0d1f… --reason "Ticket 42"',
  run: async (context, { entry_ids: ids, ...who }) => {
    const livemode = await isLiveClearing(await context.readDeps(), ids);
    const { deps, note, approval } = await openNoted(context, { livemode }, who);
    const cleared = await clearEntries(deps, ids, { ...note, ...approval });
    if (!Array.isArray(cleared)) return printApprovalRequired(context, cleared);
    const rows = cleared.map((row) => presentEntry(row, context.now()));
    context.print({ json: { data: rows }, text: `Cleared:\n${formatEntries(rows)}` });
  },
});

const assign = defineCommand({
  name: 'assign',
  description: 'say who looks after a line',
  options: z.object({ line_id: LineId, owner: textOption('who', 'name').max(100), ...NOTED }),
  notes: 'On live, --operator and --reason are required.',
  example: 'statement assign st_…:3 --owner mia',
  run: async (context, { line_id, owner, ...who }) => {
    const line = await assignLine(await context.actingDeps(), line_id, owner, who);
    printLine(context, presentLine(line, context.now()));
  },
});

async function openLine(context: CliContext, line_id: string, who: LineAct) {
  const livemode = await isLiveLine(await context.readDeps(), line_id);
  return await openNoted(context, { livemode }, who);
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

export const statementCommands = defineGroup({
  name: 'statement',
  description: 'statements of banks: importing them, and matching their lines',
  commands: [importFile, check, list, show, abandon, match, unmatch, clear, assign],
});
