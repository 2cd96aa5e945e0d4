import { z } from 'zod';
import { omitUndefined } from '../../domain/defined';
import { isLive } from '../../domain/environment';
import { formatMoney } from '../../domain/money';
import { isDay } from '../../domain/shape';
import { NUMBERINGS } from '../../domain/statement';
import {
  addBankAccount,
  listBankAccounts,
  updateBankAccount,
} from '../../service/banks/bank-accounts';
import { combine, reconcileAccounts } from '../../service/banks/statements/reconciliation';
import { defineCommand, defineGroup } from '../command';
import type { CliContext } from '../context';
import { Currency, Env, textOption } from '../options';
import { fields, formatTime, printFields, printList, table } from '../output';
import { Account, Connector, formatBoolean, formatEntries, formatLines } from './statement';

type BankAccount = Awaited<ReturnType<typeof addBankAccount>>;

function present({
  _id,
  connector,
  livemode,
  iban,
  currency,
  created_at,
  ...account
}: BankAccount) {
  const env = livemode ? 'live' : 'sandbox';
  const { closing, numbering } = account;
  return {
    ...{ bank_account_id: _id, connector, env, iban, currency, created_at, closing },
    ...omitUndefined({ numbering: numbering?.as }),
  };
}

function printAccount(context: CliContext, account: BankAccount): void {
  const json = present(account);
  printFields(context, { json }, [
    ['Bank account', json.bank_account_id],
    ['Connector', json.connector],
    ['Environment', json.env],
    ['IBAN', json.iban],
    ['Currency', json.currency],
    ['Numbering', json.numbering ?? 'none'],
    ['Created', formatTime(json.created_at)],
  ]);
}

const add = defineCommand({
  name: 'add',
  description: 'register an account that a bank keeps for the service; again changes nothing',
  options: z.object({
    connector: textOption('the connector of the bank', 'name'),
    env: Env,
    iban: textOption('its IBAN', 'iban'),
    currency: Currency,
  }),
  notes: 'Only statements of registered accounts are imported.',
  example:
    'bank-account add --connector sandbox --env sandbox --iban DE89370400440532013000 --currency EUR',
  run: async (context, { env, ...account }) => {
    const { liveConnectors, sandboxConnectors } = context.settings();
    const routes = { liveConnectors, sandboxConnectors };
    const deps = { ...(await context.actingDeps()), ...routes };
    printAccount(context, await addBankAccount(deps, { ...account, livemode: isLive(env) }));
  },
});

const update = defineCommand({
  name: 'update',
  description: 'say how the bank counts its statements',
  options: z.object({
    id: z.string().describe('its id').meta({ argument: true, placeholder: 'bank_account_id' }),
    numbering: z
      .enum(NUMBERINGS)
      .describe('continuous, yearly (from 1 in each year) or none')
      .meta({ placeholder: 'numbering' }),
  }),
  notes: `
Otherwise it is learned from the first five statements. A number that a statement jumps over is the finding
statement_missing.`,
  example: 'bank-account update ba_… --numbering yearly',
  run: async (context, { id, numbering }) => {
    printAccount(context, await updateBankAccount(await context.actingDeps(), id, { numbering }));
  },
});

const listAccounts = defineCommand({
  name: 'list',
  description: 'list the bank accounts, with the end of their last statement',
  options: z.object({}),
  example: 'bank-account list',
  run: async (context) => {
    printList(context, {
      rows: await listBankAccounts(await context.readDeps()),
      present,
      columns: [
        'BANK ACCOUNT',
        'CONNECTOR',
        'ENVIRONMENT',
        'IBAN',
        'CURRENCY',
        'CLOSED',
        'BALANCE',
      ],
      cells: ({ bank_account_id, connector, env, iban, currency, closing }) => [
        ...[bank_account_id, connector, env, iban, currency],
        ...[closing?.day ?? '-', closing === null ? '-' : formatMoney(closing.amount, currency)],
      ],
      none: 'No bank account is registered.',
    });
  },
});

export const bankAccountCommands = defineGroup({
  name: 'bank-account',
  description: 'accounts that banks keep for the service, and whose statements it imports',
  commands: [add, listAccounts, update],
});

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
