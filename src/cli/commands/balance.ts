import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { MAIN_BALANCE } from '../../domain/account/balance-account';
import { formatAmount } from '../../domain/amount';
import { isApprovalRequired } from '../../domain/approval';
import { assetRules, bookCurrency, parseBookCurrency } from '../../domain/crypto/assets';
import { omitUndefined } from '../../domain/defined';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { amountInJson, formatMoney } from '../../domain/money';
import { SENT_OUTCOMES } from '../../domain/sent-held';
import { findAccount } from '../../service/accounts';
import { actOnBalance, type BalanceCall, isLiveCall, type Note } from '../../service/balances/act';
import { assertOpposite, parseAgainst } from '../../service/balances/adjust';
import { auditAs } from '../../service/operators/deps';
import { type BalanceRow, readBalances } from '../../service/read';
import { assertNamed, identifyOperator, printApprovalRequired } from '../acting-operator';
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
  readBy,
  SignedAmount,
  SignedUnits,
  textOption,
  words,
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
  against: readBy(
    parseAgainst,
    'It must be adjustments, receivable, suspense, bank_fees, or clearing:CONNECTOR.',
  )
    .default('adjustments')
    .describe('account on the other side')
    .meta({ placeholder: 'account' }),
  bank_reference: words(100)
    .optional()
    .describe("the bank's name for the movement, with --against clearing:CONNECTOR")
    .meta({ placeholder: 'text' }),
  operation_id: OperationId.optional().describe('makes a repeat post nothing'),
  operator: Operator.optional(),
  reason: Reason,
  approved_by: ApprovedBy,
});

const ON_LIVE = `On live it needs OPERATOR_KEY and --reason, and above APPROVAL_LIMIT, always for an asset, the
approval of a second operator.`;

const adjust = defineCommand({
  name: 'adjust',
  description: 'correct a balance, and show it after that',
  options: AdjustOptions,
  notes: `
A debit never exceeds the balance. --against receivable collects what the merchant owes; clearing:CONNECTOR
corrects what a bank moved, and awaits a line of its statement; suspense holds money back and returns it;
bank_fees is the service's cost. An asset counts in its smallest unit. ${ON_LIVE}`,
  example: `balance adjust acct_… --env live --balance-account main --currency EUR --amount -5000 \\
    --operator mia --reason "Ticket 42: wire booked twice"`,
  run: async (context, { account_id, env, balance_account, operation_id, ...options }) => {
    const { against, bank_reference, operator, reason, approved_by } = options;
    const money = readMoney(options);
    assertNamed(context, operator);
    const livemode = isLive(env);
    assertOpposite(context.settings(), { livemode, against, bank_reference });
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const id = operation_id ?? `adjust_${randomUUID()}`;
    const about = { account_id, livemode, balance_account, against, bank_reference };
    const { currency, amount } = money;
    const call = omitUndefined({ ...about, currency, id, amount: `${amount}` });
    await act(context, { ...call, act: 'adjust' }, { operator, reason, approved_by }, 'Adjusted');
  },
});

/** @throws ServiceError `operator_key_required`, and those of the act */
async function act(
  context: CliContext,
  call: BalanceCall,
  { operator, reason, approved_by }: Note,
  done: string,
): Promise<void> {
  const deps = await context.actingDeps();
  const livemode = await isLiveCall(deps, call);
  const { verified, ...who } = await identifyOperator(context, { livemode, operator });
  if (livemode && reason === undefined) {
    throw new ServiceError('invalid_usage', "required option '--reason <text>' not specified");
  }
  const note = omitUndefined({ ...who, reason, approved_by: livemode ? undefined : approved_by });
  const audit = verified && { audit: auditAs(deps, verified.name) };
  const { limits } = context.settings();
  const result = await actOnBalance({ ...deps, ...audit }, call, note, { verified, limits });
  if (isApprovalRequired(result)) return printApprovalRequired(context, result);
  const { posted, ...balance } = result;
  printBalanceChange(context, balance, [done, posted]);
}

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
    operator: Operator.optional(),
    reason: Reason,
    approved_by: ApprovedBy,
  }),
  notes: ON_LIVE,
  example: 'balance reverse funded:wire-2026-03-01 --operator mia --reason "Typo"',
  run: async (context, { operation_id: id, ...note }) => {
    assertNamed(context, note.operator);
    await act(context, { act: 'reverse', id }, note, 'Reversed');
  },
});

const resolve = defineCommand({
  name: 'resolve',
  description: 'decide once who bears what a bank sent otherwise, and show the balance after that',
  options: z.object({
    operation_id: z.string().meta({ argument: true }),
    as: z.enum(SENT_OUTCOMES).describe('who bears it').meta({ placeholder: 'outcome' }),
    operator: Operator.optional(),
    reason: Reason,
    approved_by: ApprovedBy,
  }),
  notes: `
The operation is the entry that holds the money in suspense, as \`show\` names it. merchant debits the balance
and what it does not hold is owed; loss is borne by the service; returned awaits a line of the bank's statement;
never_sent awaits none. ${ON_LIVE}`,
  example:
    'balance resolve payout_sent_held:…:REF-1 --as returned --operator mia --reason "Ticket 42"',
  run: async (context, { operation_id: id, as, ...note }) => {
    assertNamed(context, note.operator);
    await act(context, { act: 'resolve', id, as }, note, 'Resolved');
  },
});

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
${ON_LIVE}`,
  example:
    'balance fund acct_… --env sandbox --balance-account main --currency EUR --amount 100000',
  run: async (context, { account_id, env, operation_id, ...options }) => {
    const { balance_account, currency, amount, operator, reason, approved_by } = options;
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    const id = operation_id ?? `fund_${randomUUID()}`;
    const owner = { account_id, livemode: isLive(env), balance_account };
    const call = { ...owner, currency, id, act: 'fund', amount: String(amount) } as const;
    await act(context, call, { operator, reason, approved_by }, 'Credited');
  },
});

export const balanceCommands = defineGroup({
  name: 'balance',
  description: 'what an account holds, crediting it and correcting it',
  commands: [show, fund, adjust, reverse, resolve],
});
