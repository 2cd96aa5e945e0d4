import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { MAIN_BALANCE } from '../../domain/account/balance-account';
import { formatAmount } from '../../domain/amount';
import { omitUndefined } from '../../domain/defined';
import { isLive } from '../../domain/environment';
import { formatMoney } from '../../domain/money';
import { findAccount } from '../../service/accounts';
import { assertBank } from '../../service/balances/fund';
import { readProvedBalances } from '../../service/read';
import { assertNamed } from '../acting-operator';
import { defineCommand, defineGroup, defineRenamed } from '../command';
import {
  AccountId,
  Amount,
  ApprovedBy,
  BalanceAccount,
  BankReference,
  Currency,
  Env,
  OperationId,
  Operator,
  Reason,
} from '../options';
import { table } from '../output';
import { adjust } from './balance-adjust';
import { changeBalance, ON_LIVE, presentBalance } from './balance-change';
import { Connector } from './statement-output';

const show = defineCommand({
  name: 'show',
  description: 'show every balance of an account in one environment',
  options: z.object({ account_id: AccountId, env: Env }),
  notes: `
Receivables are what the merchant owes after a bank took back more than the balance held. With --json, proved_until is the
last day until which all days of its connectors' bank accounts are closed.`,
  example: 'balance show acct_… --env sandbox',
  run: async (context, { account_id, env }) => {
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const { balances, receivables } = await readProvedBalances(
      { stores },
      { account_id, livemode: isLive(env) },
    );
    const rows = balances.map(({ balance_account, currency, available, reserved }) => [
      balance_account,
      currency,
      formatAmount(available, currency),
      formatAmount(reserved, currency),
    ]);
    const heading = ['BALANCE ACCOUNT', 'CURRENCY', 'AVAILABLE', 'RESERVED'];
    const none = `The ${env} account holds nothing yet: ${MAIN_BALANCE} exists and is empty.`;
    const owed = receivables.map(
      (row) => `The merchant owes ${formatMoney(row.owed, row.currency)}.`,
    );
    const data = balances.map(presentBalance);
    context.print({
      json: receivables.length === 0 ? { data } : { data, receivables },
      text: [table(heading, rows, none), ...owed].join('\n\n'),
    });
  },
});

const fund = defineCommand({
  name: 'fund',
  description: 'credit a balance, and show it after that',
  options: z.object({
    account_id: AccountId,
    env: Env,
    balance_account: BalanceAccount,
    currency: Currency,
    amount: Amount.describe('how much, in minor units'),
    connector: Connector.optional().describe('connector of the bank that has it; needed on live'),
    bank_reference: BankReference.optional().describe(
      "the bank's name for the movement; needed on live",
    ),
    operation_id: OperationId.optional().describe('makes a repeat credit nothing'),
    operator: Operator.optional(),
    reason: Reason.optional(),
    approved_by: ApprovedBy,
  }),
  notes: `
It only records funds that have arrived, once for each --bank-reference; a line of the bank's statement is awaited. If the
outcome is unknown, repeat it with the same --operation-id. In the sandbox it needs no bank. ${ON_LIVE}`,
  example: `balance fund acct_… --env live --balance-account main --currency EUR --amount 100000 \\
    --connector acme --bank-reference 2026-11-29/17 --reason "Wire of November"`,
  run: async (context, { account_id, env, operation_id, ...options }) => {
    const { balance_account, currency, amount, operator, reason, approved_by } = options;
    const bank = { connector: options.connector, bank_reference: options.bank_reference };
    const livemode = isLive(env);
    assertBank(context.settings(), { livemode, ...bank });
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const id = operation_id ?? `fund_${randomUUID()}`;
    const money = { account_id, livemode, balance_account, currency, amount: `${amount}`, ...bank };
    const call = { ...omitUndefined(money), id, act: 'fund' } as const;
    await changeBalance(context, call, { operator, reason, approved_by }, 'Credited');
  },
});

const reverse = defineCommand({
  name: 'reverse',
  description:
    'undo a funding, an adjustment or a chargeback once, and show the balance after that',
  options: z.object({
    operation_id: z.string().meta({ argument: true }),
    operator: Operator.optional(),
    reason: Reason,
    approved_by: ApprovedBy,
  }),
  notes: ON_LIVE,
  example: 'balance reverse funded:wire-2026-03-01 --operator mia --reason "Typo"',
  run: async (context, { operation_id: id, ...note }) => {
    assertNamed(context, note.operator);
    await changeBalance(context, { act: 'reverse', id }, note, 'Reversed');
  },
});

const resolve = defineRenamed(
  'resolve',
  '`balance resolve` is now `movement resolve MOVEMENT_ID`: `movement list --open` prints the ids.',
);

export const balanceCommands = defineGroup({
  name: 'balance',
  description: 'what an account holds, crediting it and correcting it',
  commands: [show, fund, adjust, reverse, resolve],
});
