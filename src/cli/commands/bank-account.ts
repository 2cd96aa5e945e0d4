import { z } from 'zod';
import { isIban } from '../../domain/banks/iban';
import { NUMBERINGS } from '../../domain/banks/statement';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { formatMoney } from '../../domain/money/money';
import { isDay } from '../../domain/shape';
import {
  addBankAccount,
  listBankAccounts,
  readBankAccountSettings,
  updateBankAccount,
} from '../../service/banks/bank-accounts';
import { combine, reconcileAccounts } from '../../service/banks/statements/reconciliation';
import { defineCommand, defineGroup } from '../command';
import { type CliContext, readRoutes } from '../context';
import { Connector, Currency, Env, Id, textOption, wholeNumber } from '../options';
import { fields, formatTime, printFields, printList, table } from '../output';
import { Account, formatBoolean, formatEntries, formatLines } from './statement';

type BankAccount = Awaited<ReturnType<typeof addBankAccount>>;

function present(bankAccount: BankAccount) {
  const { _id, connector, livemode, iban: account, currency, created_at, closing } = bankAccount;
  const env = livemode ? 'live' : 'sandbox';
  const iban = isIban(account) ? account : null;
  return {
    ...{ bank_account_id: _id, connector, env, account, iban, currency, created_at, closing },
    ...readBankAccountSettings(bankAccount),
  };
}

function printAccount(context: CliContext, account: BankAccount): void {
  const json = present(account);
  printFields(context, { json }, [
    ['Bank account', json.bank_account_id],
    ['Connector', json.connector],
    ['Environment', json.env],
    ['Account', json.account],
    ['Currency', json.currency],
    ['Numbering', json.numbering],
    ['Open days', String(json.open_days)],
    ['Tolerance', formatMoney(json.tolerance, json.currency)],
    ['Created', formatTime(json.created_at)],
  ]);
}

const add = defineCommand({
  name: 'add',
  description: 'register an account that a bank keeps for the service; again changes nothing',
  options: z.object({
    connector: textOption('the connector of the bank', 'name'),
    env: Env,
    iban: textOption('its IBAN', 'iban').optional(),
    account_id: textOption('what its statements call an account without IBAN', 'id').optional(),
    currency: Currency,
  }),
  notes: 'Only statements of registered accounts are imported. It has an IBAN or an id, not both.',
  example:
    'bank-account add --connector sandbox --env sandbox --iban DE89370400440532013000 --currency EUR',
  run: async (context, { env, iban, account_id, ...account }) => {
    if ((iban === undefined) === (account_id === undefined)) {
      const message = 'Name the account by --iban or by --account-id.';
      throw new ServiceError('invalid_usage', message);
    }
    const deps = { ...(await context.actingDeps()), ...readRoutes(context) };
    const name = iban === undefined ? { account_id: account_id ?? '' } : { iban };
    const fresh = { ...account, ...name, livemode: isLive(env) };
    printAccount(context, await addBankAccount(deps, fresh));
  },
});

const update = defineCommand({
  name: 'update',
  description: 'say how the statements of an account are treated',
  options: z.object({
    id: Id.describe('its id').meta({ argument: true, placeholder: 'bank_account_id' }),
    open_days: wholeNumber(0, 365)
      .optional()
      .describe('for how many days a line may match no entry; 5 by default')
      .meta({ placeholder: 'n' }),
    tolerance: wholeNumber(0, 99_999_999_999)
      .optional()
      .describe('by how much a line may differ from the one entry that it names; 0 by default')
      .meta({ placeholder: 'minor' }),
    numbering: z
      .enum(NUMBERINGS)
      .optional()
      .describe('continuous, yearly (from 1 in each year) or none')
      .meta({ placeholder: 'numbering' }),
  }),
  notes: `
A line that is open for longer is the attention reason lines_open. A difference up to the tolerance is booked as a charge
of the bank. The numbering is otherwise learned from the first five statements; a number that one jumps over is the
finding statement_missing.`,
  example: 'bank-account update ba_… --open-days 3 --tolerance 50 --numbering yearly',
  run: async (context, { id, ...settings }) => {
    if (Object.values(settings).every((value) => value === undefined)) {
      const message = 'Name what to change: --open-days, --tolerance or --numbering.';
      throw new ServiceError('invalid_usage', message);
    }
    printAccount(context, await updateBankAccount(await context.actingDeps(), id, settings));
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
      columns: {
        'BANK ACCOUNT': 'bank_account_id',
        CONNECTOR: 'connector',
        ENVIRONMENT: 'env',
        ACCOUNT: 'account',
        CURRENCY: 'currency',
        CLOSED: ({ closing }) => closing?.day ?? null,
        BALANCE: ({ closing, currency }) => closing && formatMoney(closing.amount, currency),
      },
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
    const texts = each.map((shown) => {
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
    });
    context.print({ json: combine(each), text: texts.join('\n\n') });
  },
});

export const reconciliationCommands = defineGroup({
  name: 'reconciliation',
  description: "the bank's statements against the ledger, day by day",
  commands: [reconcile],
});
