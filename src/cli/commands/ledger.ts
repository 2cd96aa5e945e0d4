import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { describeError } from '../../base/errors';
import { formatAmount, formatCurrency } from '../../domain/amount';
import { parseBookCurrency } from '../../domain/crypto/assets';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { formatCount } from '../../domain/format-count';
import { amountInJson } from '../../domain/money';
import { describeRemedy, FINDING_REMEDIES } from '../../domain/remedies';
import {
  CHECKS,
  checkLedger,
  listHeads,
  readTrialBalance,
  type StoredCheckpoint,
  StoredCheckpoints,
  type TrialBalance,
  type Verification,
} from '../../service/operators/ledger';
import { defineCommand, defineGroup } from '../command';
import { Env, Time, textOption } from '../options';
import { fields, table } from '../output';

const verify = defineCommand({
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
    const against = file === undefined ? [] : readStoredHeads(file);
    const { db } = context.settings().mongodb;
    const client = await context.longReader();
    const data = await checkLedger(client, db, { ...options, against, now, progress });
    const heads = await listHeads(client, db);
    context.print({ json: { data: { ...data, heads } }, text: report(data) });
    const { differences_total: total } = data;
    if (total === 0) return;
    throw new ServiceError('ledger_differs', `The ledger has ${formatCount(total, 'difference')}.`);
  },
});

/** @throws ServiceError `file_invalid` */
function readStoredHeads(path: string): StoredCheckpoint[] {
  try {
    const shape = z.object({ data: z.object({ heads: StoredCheckpoints }) });
    return shape.parse(JSON.parse(readFileSync(path, 'utf8'))).data.heads;
  } catch (error) {
    const message = `${path} is not what \`ledger verify --json\` printed: ${describeError(error)}`;
    throw new ServiceError('file_invalid', message);
  }
}

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
    const livemode = env === undefined ? undefined : isLive(env);
    const { db } = context.settings().mongodb;
    const balance = await readTrialBalance(client, db, { livemode, at, now: context.now });
    context.print({ json: presentTrialBalance(balance), text: formatTrialBalance(balance) });
  },
});

function presentTrialBalance({ rows, rows_total, totals, findings }: TrialBalance) {
  return {
    rows: rows.map((row) => ({ ...row, balance: presentAmount(row.balance, row.currency) })),
    totals: totals.map((total) => ({ ...total, sum: presentAmount(total.sum, total.currency) })),
    findings: findings.map((row) => ({
      ...{ ...row, amount: presentAmount(row.amount, row.currency) },
      remedy: describeRemedy(FINDING_REMEDIES[row.code]),
    })),
    rows_total,
  };
}

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
  commands: [verify, trialBalance],
});
