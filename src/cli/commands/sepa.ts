import { z } from 'zod';
import { ServiceError } from '../../domain/errors';
import { formatMoney, isBalanceAccountName } from '../../domain/money/money';
import { formatCount } from '../../domain/printable';
import { hasServedLive, isLiveConnector } from '../../service/banks/connectors';
import { SEPA_CONNECTOR } from '../../service/banks/sepa/book';
import { presentName } from '../../service/banks/sepa/file-names';
import {
  isLiveFile,
  listFiles,
  noteRelease,
  requestCut,
  resendOrRequest,
  type SepaDeps,
  showFile,
} from '../../service/banks/sepa/files';
import { dismissInbound, importTaken, listInbound } from '../../service/banks/sepa/import';
import { getSystemUser } from '../../service/operators/deps';
import { openNoted, printApprovalRequired } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import { type CliContext, readRoutes } from '../context';
import { Id, limit, NOTED, Operator, Reason } from '../options';
import { fields, formatTime, printFields, printList, table } from '../output';

const Connector = z
  .string()
  // Its database has it as a part of its name.
  .refine(
    isBalanceAccountName,
    'It must be the name of a connector: 1 to 64 letters, digits, hyphens and underscores.',
  )
  .describe('name of the connector')
  .meta({ placeholder: 'name' })
  .default(SEPA_CONNECTOR);
const FileId = Id.describe('id of the file, its MsgId').meta({
  argument: true,
  placeholder: 'file_id',
});

const cut = defineCommand({
  name: 'cut',
  description: 'write a file of the open batch now, without waiting for the cut-off',
  options: z.object({ connector: Connector }),
  notes: 'The running connector writes it, within SEPA_POLL_SECONDS.',
  example: 'sepa cut',
  run: async (context, { connector }) => {
    const files = await requestCut(await openDeps(context, connector));
    const text = files.length === 0 ? 'No payout waits for a file.' : files.join('\n');
    context.print({ json: { files }, text });
  },
});

const importStatements = defineCommand({
  name: 'import',
  description: 'import the statements that the connector took, and match their lines',
  options: z.object({ connector: Connector }),
  notes: `
From SEPA_IN_DIR/processed, for the account SEPA_IBAN, which it registers, and others that are registered for the
connector. A refused statement goes to SEPA_IN_DIR/refused. \`npm start\` does it by itself; elsewhere run it every few minutes.`,
  example: 'sepa import',
  run: async (context, { connector }) => {
    const settings = context.settings();
    const { mongodb, sepa } = settings;
    if (sepa === undefined) {
      const message =
        'SEPA_IN_DIR and SEPA_IBAN are not set: they name the folder and the account.';
      throw new ServiceError('setting_missing', message);
    }
    const routes = readRoutes(context);
    const imports = await importTaken({
      ...(await context.actingDeps()),
      ...{ database: mongodb.db, connector, livemode: isLiveConnector(routes, connector) },
      ...routes,
      ...sepa,
    });
    const lines = imports.map(({ file, statements, set_aside, refusal }) => {
      if (refusal !== null) return `${presentName(file)}: ${refusal.code}: ${refusal.message}`;
      const others = set_aside.map(({ account }) => `, ${account} set aside`).join('');
      return `${presentName(file)}: ${formatCount(statements.length, 'statement')}${others}`;
    });
    context.print({ json: { data: imports }, text: lines.join('\n') || 'Nothing to import.' });
  },
});

type ShownFile = Awaited<ReturnType<typeof listFiles>>['rows'][number];

function formatBankState({ refusal_code, bank_status, awaiting_release }: ShownFile): string {
  const status = refusal_code ?? bank_status ?? '-';
  return awaiting_release === null ? status : `${status}, awaiting release`;
}

/** Names the rail, and whether the file left for the check of names. */
function describeKind({ instant, verified }: ShownFile): string {
  return `${instant ? 'instant' : 'transfer'}${verified ? ', verified' : ''}`;
}

const FILE_COLUMNS = ['FILE', 'STATE', 'KIND', 'PAYOUTS', 'AMOUNT', 'EXECUTION', 'BANK'];

const list = defineCommand({
  name: 'list',
  description: 'list the files to the bank, the newest first, and what waits for the next one',
  options: z.object({ connector: Connector, limit: limit(1_000, 100) }),
  example: 'sepa file list',
  run: async (context, { connector, limit: count }) => {
    const { rows, has_more, open } = await listFiles(await openDeps(context, connector), count);
    const cells = rows.map((file) => [
      ...[file.id, file.state, describeKind(file), String(file.payouts)],
      ...[formatMoney(file.amount, 'EUR'), file.execution_day ?? '-', formatBankState(file)],
    ]);
    const waits = `${formatCount(open.payouts, 'payout')} of ${formatMoney(open.amount, 'EUR')} in the open batch`;
    const more = has_more ? '\nThere are more.' : '';
    context.print({
      json: { data: rows, has_more, open },
      text: `${table(FILE_COLUMNS, cells, 'No file was cut.')}${more}\n${waits}`,
    });
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show a file and its payouts',
  options: z.object({ file_id: FileId, connector: Connector, limit: limit(10_000, 1_000) }),
  example: 'sepa file show 0b7d6d524a3f4a5d9b530f0f6d1a3c11',
  run: async (context, { file_id, connector, limit: count }) => {
    const { file, rows, has_more } = await showFile(
      await openDeps(context, connector),
      file_id,
      count,
    );
    const cells = rows.map((line) => [
      ...[line.payout_id, line.state, formatMoney(line.amount, 'EUR'), line.code ?? '-'],
      ...[line.verification?.result ?? '-', line.value_date ?? '-', line.bank_reference ?? '-'],
    ]);
    const columns = ['PAYOUT', 'STATE', 'AMOUNT', 'CODE', 'PAYEE', 'VALUE DATE', 'BANK REFERENCE'];
    const answers = file.statuses.map((each) => [
      ...[each.created_at, each.status ?? '-', each.code ?? '-', each.message_id ?? '-'],
    ]);
    const more = has_more ? '\nThere are more.' : '';
    const results = Object.entries(file.results).filter(([, count]) => count > 0);
    const payees = results.map(([result, count]) => `${count} ${result}`).join(', ');
    const head = fields([
      ['File', file.name],
      ['State', file.state],
      ['Kind', describeKind(file)],
      ['Account', file.account],
      ['Execution', file.execution_day ?? '-'],
      ['Payouts', String(file.payouts)],
      ['Amount', formatMoney(file.amount, 'EUR')],
      ['Cut', file.created_at],
      ['Sent', file.sent_at ?? '-'],
      ['Ended', file.ended_at ?? '-'],
      ['Bank', formatBankState(file)],
      ['Payees', payees || 'not checked'],
      ['Released', file.released?.at],
    ]);
    const statuses = table(['ANSWER OF', 'STATUS', 'CODE', 'MESSAGE'], answers, 'No answer came.');
    context.print({
      json: { ...file, data: rows, has_more },
      text: `${head}\n\n${statuses}\n\n${table(columns, cells, 'It has no payouts.')}${more}`,
    });
  },
});

const released = defineCommand({
  name: 'released',
  description: 'note that a file which the bank held after a check of names was released there',
  options: z.object({
    file_id: FileId,
    connector: Connector,
    ...NOTED,
  }),
  notes:
    'It releases nothing itself. On live it needs OPERATOR_KEY and --reason; again changes nothing.',
  example: 'sepa file released 0b7d6d524a3f4a5d9b530f0f6d1a3c11 --reason "Ticket 42"',
  run: async (context, { file_id, connector, ...who }) => {
    const { deps, note } = await openFile(context, connector, file_id, who);
    const changed = await noteRelease(deps, file_id, note);
    const text = changed ? 'The release is noted.' : 'It waits for no release any more.';
    context.print({ json: { file_id, changed }, text });
  },
});

const resend = defineCommand({
  name: 'resend',
  description: 'free the payouts of a refused file, or duplicates, for the next one with a new id',
  options: z.object({
    file_id: FileId,
    connector: Connector,
    bank_confirmed_not_executed: z
      .boolean()
      .default(false)
      .describe('the bank has confirmed that it executes nothing of it'),
    ...NOTED,
  }),
  notes: `
Correct first why the bank refused it. Payouts that the bank has booked stay. Where the bank had accepted the
file, or calls payouts of it duplicates, it needs --bank-confirmed-not-executed. On live it needs OPERATOR_KEY
and --reason, and of such a file, above APPROVAL_LIMIT, the approval of a second operator.`,
  example: 'sepa file resend 0b7d6d524a3f4a5d9b530f0f6d1a3c11 --reason "Ticket 42"',
  run: async (context, { file_id, connector, bank_confirmed_not_executed, ...who }) => {
    const { deps, note, approval } = await openFile(context, connector, file_id, who);
    const act = { bank_confirmed_not_executed, ...note };
    const payouts = await resendOrRequest(deps, file_id, act, approval);
    if (typeof payouts !== 'number') return printApprovalRequired(context, payouts);
    const text = `${formatCount(payouts, 'payout')} in the open batch again.`;
    context.print({ json: { file_id, payouts }, text });
  },
});

const listTaken = defineCommand({
  name: 'list',
  description: 'list the files of the bank that the connector took, the newest first',
  options: z.object({
    refused: z.boolean().default(false).describe('only those that were refused'),
    connector: Connector,
    limit: limit(1_000, 100),
  }),
  example: 'sepa inbound list --refused',
  run: async (context, { connector, ...query }) => {
    printList(context, {
      ...(await listInbound(await openDeps(context, connector), query)),
      present: (row) => row,
      columns: {
        FILE: 'id',
        TAKEN: 'taken_at',
        FOLDER: 'folder',
        NAME: 'name',
        KIND: 'kind',
        REFUSED: 'code',
        DISMISSED: ({ dismissed }) => dismissed?.operator ?? null,
      },
      none: 'The connector took no file.',
    });
  },
});

const dismiss = defineCommand({
  name: 'dismiss',
  description: 'say that a refused file of the bank need not be taken; again changes nothing',
  options: z.object({
    file_id: FileId.describe('id of the file, as the list prints it'),
    connector: Connector,
    operator: Operator.optional(),
    reason: Reason,
  }),
  notes: `
Nothing of the file is applied. It is no attention reason anymore, unless it comes again. On live it needs
OPERATOR_KEY.`,
  example: 'sepa inbound dismiss 9f86d0…0a08 --reason "Ticket 42: a letter of the bank"',
  run: async (context, { file_id, connector, operator: typed, reason }) => {
    const read = { ...(await openDeps(context, connector)), ...(await context.readDeps()) };
    const livemode = await hasServedLive({ ...read, ...readRoutes(context) }, connector);
    const { deps, note } = await openNoted(context, { livemode }, { operator: typed, reason });
    const { operator = getSystemUser().system_user } = note;
    const file = await dismissInbound(
      { ...deps, database: read.database, connector },
      { file_id, livemode },
      { operator, reason },
    );
    printFields(context, { json: file }, [
      ['File', file.name],
      ['Refused', file.code ?? '-'],
      ['Dismissed', formatTime(file.dismissed?.at ?? null)],
      ['By', file.dismissed?.operator],
    ]);
  },
});

async function openDeps(context: CliContext, connector: string): Promise<SepaDeps> {
  const { mongo, now } = await context.readDeps();
  return { mongo, now, database: context.settings().mongodb.db, connector };
}

async function openFile(
  context: CliContext,
  connector: string,
  file_id: string,
  who: Parameters<typeof openNoted>[2],
) {
  const read = await openDeps(context, connector);
  const livemode = await isLiveFile(read, file_id);
  const opened = await openNoted(context, { livemode }, who);
  return { ...opened, deps: { ...read, ...opened.deps } };
}

const fileCommands = defineGroup({
  name: 'file',
  description: 'files of payouts to the bank',
  commands: [list, show, released, resend],
});

const inboundCommands = defineGroup({
  name: 'inbound',
  description: 'files of the bank',
  commands: [listTaken, dismiss],
});

export const sepaCommands = defineGroup({
  name: 'sepa',
  description: 'payouts by SEPA files',
  commands: [cut, importStatements, fileCommands, inboundCommands],
});
