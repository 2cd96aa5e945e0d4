import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { describeError } from '../../base/errors';
import { parseBookCurrency } from '../../domain/crypto/assets';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { amountInJson, formatAmount, formatCurrency } from '../../domain/money/money';
import { AUDIT_LABELS } from '../../domain/operators/audit-log';
import { describeRemedy, FINDING_REMEDIES } from '../../domain/operators/remedies';
import { formatCount } from '../../domain/printable';
import { findAccount } from '../../service/merchants/accounts';
import {
  CHAIN_FAULTS,
  type ChainsCheck,
  createSignatureCheck,
  StoredHeads,
  verifyChains,
} from '../../service/operators/audit/chains';
import { type Actor, listAllAuditLines } from '../../service/operators/audit/log';
import { verifyRows } from '../../service/operators/audit/rows';
import {
  CHECKS,
  checkLedger,
  listHeads,
  readTrialBalance,
  StoredCheckpoints,
  type TrialBalance,
} from '../../service/operators/ledger';
import { defineCommand, defineGroup } from '../command';
import { findAuditKeys } from '../connections';
import { Env, idOption, limit, Time, textOption } from '../options';
import { fields, formatTime, printList, table } from '../output';

const list = defineCommand({
  name: 'list',
  description: 'list the lines of the audit log, newest first',
  options: z.object({
    account: idOption('only of this account').optional(),
    env: Env.optional(),
    since: Time.optional().describe('only from this time on'),
    limit: limit(1_000, 100),
  }),
  example: 'audit list --account acct_… --since 2026-03-01T00:00:00Z',
  run: async (context, { account, env, since, limit: count }) => {
    const { stores } = await context.readDeps();
    if (account !== undefined) await findAccount(stores, account);
    const livemode = env && isLive(env);
    const query = { account_id: account, livemode, since, limit: count };
    printList(context, {
      ...(await listAllAuditLines({ stores }, query)),
      present: ({ _id: id, prev: _, actor: { via, ...actor }, ...line }) => ({
        id,
        ...line,
        actor: { door: via, ...actor },
      }),
      columns: {
        AT: ({ at }) => formatTime(at),
        WHO: (_, { actor }) => formatActor(actor),
        WHAT: ({ act, seq }) =>
          typeof seq === 'number' ? AUDIT_LABELS[act] : `${AUDIT_LABELS[act]} (not chained)`,
        TARGET: 'target',
        ACCOUNT: 'account_id',
      },
      none: 'Nothing was changed.',
    });
  },
});

function formatActor(actor: Actor): string {
  if (actor.via === 'dashboard') return `${actor.email}${formatAddress(actor)}`;
  if (actor.via === 'api') return `${actor.key_id} (API)${formatAddress(actor)}`;
  if (actor.via === 'service') return 'the service';
  if (actor.via === 'workflow') return `${actor.operator} (Temporal)`;
  const user = `${actor.system_user} at ${actor.host}`;
  return actor.operator === undefined ? user : `${actor.operator} (${user})`;
}

function formatAddress({ address }: { address?: string }): string {
  return address === undefined ? '' : ` from ${address}`;
}

const PrintedHeads = z.object({ heads: StoredHeads });
const PrintedCheckpoints = z.object({ data: z.object({ heads: StoredCheckpoints }) });

const verify = defineCommand({
  name: 'verify',
  description: 'follow the chains of the audit log, and compare with them who may do what',
  options: z.object({
    against: textOption(
      'output of an earlier --json, whose lines must still exist',
      'file',
    ).optional(),
  }),
  notes: `
Each line holds the hash of the line before it, so a change is seen, and is signed by the operator, or by
the process, that may write it: audit.public.json of KEYS_DIR has the processes' public keys. A writer of
the database could remove the end of a chain: store the output of --json elsewhere, and compare with it
later by --against.

Accounts, keys, routing rules, pauses, users, invitations, endpoints and wallets that no line created are
\`…_unexplained\`, and those that differ from their lines \`…_changed\`.`,
  example: 'audit verify --against heads.json',
  run: async (context, { against }) => {
    const printed = against && readPrinted(against, PrintedHeads, 'audit verify');
    const { stores } = await context.readDeps();
    const settings = context.settings();
    const isSigned = await createSignatureCheck(async () => ({
      operators: await stores.operators.list(),
      processes: findAuditKeys(settings),
    }));
    const check = await verifyChains(stores.auditLog, isSigned, printed ? printed.heads : []);
    const rows = await verifyRows(await context.longReader(), settings.mongodb.db, isSigned);
    const count = formatCount(rows.rows, 'row');
    const cells = rows.findings.map(({ code, account_id, id, fields }) => [
      ...[code, account_id ?? '-', id, fields.join(', ') || '-'],
    ]);
    const explained =
      rows.unexplained === 0
        ? `${count}, all explained by the lines.`
        : `${count}, of which the lines do not explain ${rows.unexplained}:\n\n` +
          table(['FINDING', 'ACCOUNT', 'ID', 'DIFFERS IN'], cells, '');
    const text = `${reportChains(check)}\n\n${explained}`;
    context.print({ json: { ...check, ...rows }, text });
    // The report is printed already; the error sets the exit code.
    const { size } = new Set(check.broken.map(({ chain }) => chain));
    if (size > 0) {
      const chains = formatCount(size, 'broken chain');
      throw new ServiceError('audit_log_broken', `The audit log has ${chains}.`);
    }
    if (rows.unexplained > 0) {
      const message = `The audit log does not explain ${formatCount(rows.unexplained, 'row')}.`;
      throw new ServiceError('audit_rows_unexplained', message);
    }
  },
});

function reportChains({ lines, chains, unchained, broken }: ChainsCheck): string {
  const extra =
    unchained === 0 ? '' : ` ${formatCount(unchained, 'line')} without a place in a chain.`;
  const scope = `${formatCount(lines, 'line')} in ${formatCount(chains, 'chain')}.${extra}`;
  if (broken.length === 0) return `${scope} Nothing is broken.`;
  const rows = broken.map(({ chain, seq, line_id, fault }) => [
    chain,
    String(seq),
    line_id ?? '-',
    CHAIN_FAULTS[fault],
  ]);
  return `${scope} Broken lines:\n\n${table(['CHAIN', 'PLACE', 'LINE', 'FAULT'], rows, '')}`;
}

/** @throws ServiceError `file_invalid` */
function readPrinted<T>(path: string, shape: z.ZodType<T>, command: string): T {
  try {
    return shape.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const message = `${path} is not what \`${command} --json\` printed: ${describeError(error)}`;
    throw new ServiceError('file_invalid', message);
  }
}

export const auditCommands = defineGroup({
  name: 'audit',
  description: 'who changed what: the audit log, and whether it is complete',
  commands: [list, verify],
});

const verifyLedger = defineCommand({
  name: 'verify',
  description: 'recompute every balance from its journal entries, and report what differs',
  options: z.object({
    full: z.boolean().default(false).describe('read everything behind the checkpoints again, too'),
    against: textOption(
      'output of an earlier --json, whose checkpoints must still exist',
      'file',
    ).optional(),
    book: z.string().optional().describe('check one book and the resources of its journal entries'),
  }),
  notes: `
Checks:
${fields(Object.entries(CHECKS)).replace(/^/gm, '  ')}

A writer of the database could rebuild entries and checkpoints: store the output of --json elsewhere, and
compare with it later by --against, with --full.

It reads what is new since its last run and writes checkpoints; the service may run meanwhile. Exit code 1
when there are differences, of which the first 100 are listed.`,
  example: 'ledger verify --full',
  run: async (context, { against: file, ...options }) => {
    const { now, progress } = context;
    const printed = file && readPrinted(file, PrintedCheckpoints, 'ledger verify');
    const against = printed ? printed.data.heads : [];
    const { db } = context.settings().mongodb;
    const client = await context.longReader();
    const data = await checkLedger(client, db, { ...options, against, now, progress });
    const heads = await listHeads(client, db);
    const { books, postings, differences, differences_total: total } = data;
    const scope = `${formatCount(postings, 'posting')} in ${formatCount(books, 'book')}`;
    const found = formatCount(total, 'difference');
    const rows = differences.map((each) =>
      [each.check, each.subject, each.part, each.expected, each.found].map((cell) =>
        String(cell ?? '-'),
      ),
    );
    const list = table(['CHECK', 'SUBJECT', 'PART', 'EXPECTED', 'FOUND'], rows, '');
    const left = total - differences.length;
    const more = left > 0 ? `\n\nThere are ${left} more.` : '';
    const text =
      total === 0 ? `${scope}: nothing differs.` : `${scope}: ${found}.\n\n${list}${more}`;
    context.print({ json: { data: { ...data, heads } }, text });
    if (total > 0) throw new ServiceError('ledger_differs', `The ledger has ${found}.`);
  },
});

/** Rows for a terminal; `--json` prints more. */
const SHOWN_MAX = 1_000;

const At = Time.transform((time) => new Date(time).toISOString());

const FINDINGS = Object.entries(FINDING_REMEDIES).map(([code, { what }]) => [code, what] as const);

const trialBalance = defineCommand({
  name: 'trial-balance',
  description: 'list the balances of all books, and what merchants and banks do not agree on',
  options: z.object({
    env: Env.optional(),
    at: At.optional().describe('time of posting until which entries count'),
  }),
  notes: `
Findings:
${fields(FINDINGS).replace(/^/gm, '  ')}

Amounts are in minor units, those of an asset in its smallest unit.`,
  example: 'ledger trial-balance --env live --at 2026-12-31T23:59:59.999Z',
  run: async (context, { env, at }) => {
    if (at !== undefined && at > context.now().toISOString()) {
      throw new ServiceError('invalid_usage', 'That time is in the future.');
    }
    const client = await context.longReader();
    const livemode = env && isLive(env);
    const { db } = context.settings().mongodb;
    const balance = await readTrialBalance(client, db, { livemode, at, now: context.now });
    const { rows, rows_total, totals, findings } = balance;
    const json = {
      rows: rows.map((row) => ({ ...row, balance: presentAmount(row.balance, row.currency) })),
      totals: totals.map((total) => ({ ...total, sum: presentAmount(total.sum, total.currency) })),
      findings: findings.map((row) => ({
        ...row,
        amount: presentAmount(row.amount, row.currency),
        remedy: describeRemedy(FINDING_REMEDIES[row.code]),
      })),
      rows_total,
    };
    context.print({ json, text: formatTrialBalance(balance) });
  },
});

function presentAmount(amount: bigint, currency: string): number | string {
  return parseBookCurrency(currency) === undefined ? amountInJson(amount) : String(amount);
}

function formatTrialBalance({ rows, rows_total, totals, findings }: TrialBalance): string {
  const shown = rows.slice(0, SHOWN_MAX);
  const tables = totals.map(({ env, currency, sum }) => {
    const own = shown.filter(({ book }) => book.endsWith(`:${env}:${currency}`));
    const lines = [...own, { book: 'Total', account: '', balance: sum }];
    const amounts = lines.map(({ balance }) => formatAmount(balance, currency));
    const width = Math.max(...amounts.map((amount) => amount.length));
    const cells = lines.map(({ book, account }, at) => [
      book,
      account,
      (amounts[at] ?? '').padStart(width),
    ]);
    const heading = ['BOOK', 'ACCOUNT', 'BALANCE'];
    return `${formatCurrency(currency)}, ${env}\n${table(heading, cells, '')}`;
  });
  const more = rows_total - shown.length;
  const found = findings.map(({ code, message, amount, currency }) => [
    code,
    formatAmount(amount, currency),
    message,
  ]);
  return [
    ...(tables.length === 0 ? ['There are no books.'] : tables),
    ...(more > 0 ? [`There are ${more} more rows.`] : []),
    table(['FINDING', 'AMOUNT', 'WHAT'], found, 'Findings: none.'),
  ].join('\n\n');
}

export const ledgerCommands = defineGroup({
  name: 'ledger',
  description: 'the double-entry ledger behind the balances',
  commands: [verifyLedger, trialBalance],
});
