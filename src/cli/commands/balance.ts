import { z } from 'zod';
import { MAIN_BALANCE } from '../../domain/account/balance-account';
import { formatAmount } from '../../domain/amount';
import { assetRules, bookCurrency, parseBookCurrency } from '../../domain/crypto/assets';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { amountInJson, formatMoney } from '../../domain/money';
import { findAccount } from '../../service/accounts';
import { adjustBalance, reverseOperation } from '../../service/balances/adjust';
import { APPROVAL_LIMIT, fundBalance } from '../../service/balances/fund';
import { type BalanceRow, readBalances } from '../../service/read';
import { defineCommand, defineGroup, parseInput } from '../command';
import type { CliContext } from '../context';
import {
  AccountId,
  Amount,
  ApprovedBy,
  BalanceAccount,
  Currency,
  Env,
  OperationId,
  Operator,
  Reason,
  SignedAmount,
  SignedUnits,
  textOption,
} from '../options';
import { printFields, table } from '../output';

const AdjustOptions = z.object({
  account_id: AccountId,
  env: Env,
  balance_account: BalanceAccount,
  currency: Currency.optional(),
  asset: z.string().optional().describe('a crypto asset, instead of a currency'),
  network: z.string().optional().describe('network of the asset'),
  amount: textOption('how much; below 0 debits', 'minor'),
  against: z
    .enum(['adjustments', 'receivable'])
    .default('adjustments')
    .describe('account on the other side')
    .meta({ placeholder: 'account' }),
  operation_id: OperationId.optional().describe('makes a repeat post nothing'),
  operator: Operator,
  reason: Reason,
  approved_by: ApprovedBy,
});

const adjust = defineCommand({
  name: 'adjust',
  description: 'correct a balance, and show it after that',
  options: AdjustOptions,
  notes: `
A debit never exceeds the balance. --against receivable collects what the merchant owes. An asset counts
in its smallest unit. On live a second operator approves more than APPROVAL_LIMIT (${APPROVAL_LIMIT} minor
units by default), and each correction of an asset.`,
  example: `balance adjust acct_… --env live --balance-account main --currency EUR --amount -5000 \\
    --operator mia --reason "Ticket 42: wire booked twice"`,
  run: async (context, { account_id, env, balance_account, against, operation_id, ...options }) => {
    const money = readMoney({ ...options, against });
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const balance = await adjustBalance(
      await createAdjustDeps(context),
      { account_id, livemode: isLive(env), balance_account, ...money, against },
      options,
      operation_id,
    );
    printBalanceChange(context, balance, ['Adjusted', money.amount]);
  },
});

/** @throws ServiceError `invalid_usage` */
function readMoney({
  currency,
  asset,
  network,
  amount,
  against,
}: Pick<z.infer<typeof AdjustOptions>, 'currency' | 'asset' | 'network' | 'amount' | 'against'>) {
  if (currency !== undefined && asset === undefined && network === undefined) {
    return { currency, amount: parseInput(SignedAmount, amount) };
  }
  const rules = currency === undefined ? assetRules(asset ?? '', network ?? '') : undefined;
  if (rules === undefined) {
    const message = 'Give --currency, or a crypto asset by --asset and --network.';
    throw new ServiceError('invalid_usage', message);
  }
  if (against === 'receivable') {
    throw new ServiceError('invalid_usage', 'No merchant owes a crypto asset.');
  }
  return { currency: bookCurrency(rules), amount: parseInput(SignedUnits, amount) };
}

const reverse = defineCommand({
  name: 'reverse',
  description:
    'undo a funding, an adjustment or a chargeback once, and show the balance after that',
  options: z.object({
    operation_id: z.string().meta({ argument: true }),
    operator: Operator,
    reason: Reason,
    approved_by: ApprovedBy,
  }),
  example: 'balance reverse funded:wire-2026-03-01 --operator mia --reason "Typo"',
  run: async (context, { operation_id, ...correction }) => {
    const deps = await createAdjustDeps(context);
    const { amount, ...balance } = await reverseOperation(deps, operation_id, correction);
    printBalanceChange(context, balance, ['Reversed', amount]);
  },
});

async function createAdjustDeps(context: CliContext) {
  const { approvalLimit } = context.settings();
  return { ...(await context.actingDeps()), approvalLimit };
}

/** Presents a balance; an asset counts in its smallest unit, as a text. */
function presentBalance<Row extends BalanceRow>(row: Row) {
  const { currency, available, reserved, ...rest } = row;
  const asset = parseBookCurrency(currency);
  if (asset !== undefined) {
    return { ...rest, ...asset, available: String(available), reserved: String(reserved) };
  }
  return { ...row, available: amountInJson(available), reserved: amountInJson(reserved) };
}

function printBalanceChange(
  context: CliContext,
  row: BalanceRow & { operation_id: string },
  [label, amount]: [string, number | bigint],
): void {
  printFields(context, { json: presentBalance(row) }, [
    ['Balance account', row.balance_account],
    [label, formatAmount(amount, row.currency)],
    ['Available', formatAmount(row.available, row.currency)],
    ['Reserved', formatAmount(row.reserved, row.currency)],
    ['Operation', row.operation_id],
  ]);
}

const show = defineCommand({
  name: 'show',
  description: 'show every balance of an account in one environment',
  options: z.object({ account_id: AccountId, env: Env }),
  notes: `
Receivables are what the merchant owes after a bank took back more than the balance held.`,
  example: 'balance show acct_… --env sandbox',
  run: async (context, { account_id, env }) => {
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const { balances, receivables } = await readBalances(
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
    operation_id: OperationId.optional().describe('makes a repeat credit nothing'),
    operator: Operator.optional(),
    reason: Reason.optional(),
    approved_by: ApprovedBy,
  }),
  notes: `
It only records funds that have arrived. If the outcome is unknown, repeat it with the same --operation-id.
On live, a second operator approves more than APPROVAL_LIMIT, if it is set.`,
  example:
    'balance fund acct_… --env sandbox --balance-account main --currency EUR --amount 100000',
  run: async (context, { account_id, env, operation_id: id, ...options }) => {
    const { balance_account, currency, amount, operator, reason, approved_by } = options;
    const { creditLimit } = context.settings();
    const deps = await context.actingDeps();
    await findAccount(deps.stores, account_id);
    const balance = await fundBalance(
      { ...deps, creditLimit },
      { account_id, livemode: isLive(env), balance_account, currency, amount },
      { id, note: { operator, reason, approved_by } },
    );
    printBalanceChange(context, balance, ['Credited', amount]);
  },
});

export const balanceCommands = defineGroup({
  name: 'balance',
  description: 'what an account holds, crediting it and correcting it',
  commands: [show, fund, adjust, reverse],
});
