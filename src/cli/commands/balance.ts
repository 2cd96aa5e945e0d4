import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { assetRules, bookCurrency, parseBookCurrency } from '../../domain/crypto/assets';
import { omitUndefined } from '../../domain/defined';
import { isLive, toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { amountInJson, formatAmount, formatMoney, MAIN_BALANCE } from '../../domain/money/money';
import { isApprovalRequired } from '../../domain/operators/approval';
import { assertServes, isLiveConnector } from '../../service/banks/connectors';
import { actOnBalance, type BalanceCall, isLiveCall } from '../../service/money/balances/act';
import { assertOpposite, PLATFORM_KINDS, parseAgainst } from '../../service/money/balances/adjust';
import { assertBank, type Note } from '../../service/money/balances/fund';
import { type BalanceRow, readProvedBalances } from '../../service/money/read';
import { openNoted, printApprovalRequired } from '../acting-operator';
import { defineCommand, defineGroup, defineRenamed, parseInput } from '../command';
import { type CliContext, findOwner, readRoutes } from '../context';
import {
  Amount,
  ApprovedBy,
  BalanceAccount,
  BankReference,
  Connector,
  Currency,
  Env,
  Id,
  NOTED,
  OperationId,
  Operator,
  OWNER,
  Reason,
  readBy,
  SignedAmount,
  SignedUnits,
  textOption,
} from '../options';
import { printFields, table } from '../output';

const ABOVE_LIMIT = `On live it needs OPERATOR_KEY and --reason, and, where the sum over 24 hours is above APPROVAL_LIMIT,
always for an asset, the approval of a second operator.`;

const AdjustOptions = z.object({
  ...OWNER,
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
  bank_reference: BankReference.optional().describe(
    "the bank's name for the movement, with --against clearing:CONNECTOR",
  ),
  owed: z
    .boolean()
    .default(false)
    .describe('a debit may exceed the balance: the merchant owes the rest'),
  operation_id: OperationId.optional().describe('makes a repeat post nothing'),
  ...NOTED,
  approved_by: ApprovedBy,
});

const adjust = defineCommand({
  name: 'adjust',
  description: 'correct a balance, and show it after that',
  options: AdjustOptions,
  notes: `
A debit never exceeds the balance, unless --owed says that the merchant owes the rest. --against receivable collects what
the merchant owes; clearing:CONNECTOR corrects what a bank moved, once for each --bank-reference, and awaits a line of its
statement; suspense holds money back and returns it;
bank_fees is the service's cost. An asset counts in its smallest unit. ${ABOVE_LIMIT}`,
  example: `balance adjust acct_… --env live --balance-account main --currency EUR --amount -5000 \\
    --operator mia --reason "Ticket 42: wire booked twice"`,
  run: async (context, { account_id, env, balance_account, operation_id, ...options }) => {
    const { against, bank_reference, operator, reason, approved_by } = options;
    const { currency, amount } = readMoney(options);
    const livemode = isLive(env);
    const owed = options.owed || undefined;
    const opposite = { livemode, against, bank_reference, owed, amount, currency };
    assertOpposite(context.settings(), opposite);
    await findOwner(context, { account_id, env });
    const id = operation_id ?? `adjust_${randomUUID()}`;
    const about = { account_id, livemode, balance_account, against, bank_reference, owed };
    const money = omitUndefined({ ...about, currency, amount: `${amount}` });
    const call = { ...money, id, act: 'adjust' } as const;
    await changeBalance(context, call, { operator, reason, approved_by }, 'Adjusted');
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

const show = defineCommand({
  name: 'show',
  description: 'show every balance of an account in one environment',
  options: z.object(OWNER),
  notes: `
Receivables are what the merchant owes after a bank took back more than the balance held. With --json, proved_until is the
last day until which all days of its connectors' bank accounts are closed.`,
  example: 'balance show acct_… --env sandbox',
  run: async (context, { account_id, env }) => {
    const owner = await findOwner(context, { account_id, env });
    const { balances, receivables } = await readProvedBalances(await context.readDeps(), owner);
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
    const later = balances.flatMap(({ balance_account, currency, pending }) =>
      pending
        ? [`${formatMoney(pending, currency)} of ${balance_account} is not available yet.`]
        : [],
    );
    const data = balances.map(presentBalance);
    context.print({
      json: receivables.length === 0 ? { data } : { data, receivables },
      text: [table(heading, rows, none), ...later, ...owed].join('\n\n'),
    });
  },
});

const fund = defineCommand({
  name: 'fund',
  description: 'credit a balance, and show it after that',
  options: z.object({
    ...OWNER,
    balance_account: BalanceAccount,
    currency: Currency,
    amount: Amount.describe('how much, in minor units'),
    connector: Connector.optional().describe('connector of the bank that has it; needed on live'),
    bank_reference: BankReference.optional().describe(
      "the bank's name for the movement; needed on live",
    ),
    operation_id: OperationId.optional().describe('makes a repeat credit nothing'),
    ...NOTED,
    approved_by: ApprovedBy,
  }),
  notes: `
It only records funds that have arrived, once for each --bank-reference; a line of the bank's statement is awaited. If the
outcome is unknown, repeat it with the same --operation-id. In the sandbox it needs no bank. ${ABOVE_LIMIT}`,
  example: `balance fund acct_… --env live --balance-account main --currency EUR --amount 100000 \\
    --connector acme --bank-reference 2026-11-29/17 --reason "Wire of November"`,
  run: async (context, { account_id, env, operation_id, ...options }) => {
    const { balance_account, currency, amount, operator, reason, approved_by } = options;
    const bank = { connector: options.connector, bank_reference: options.bank_reference };
    assertBank(context.settings(), { livemode: isLive(env), ...bank });
    const owner = await findOwner(context, { account_id, env });
    const id = operation_id ?? `fund_${randomUUID()}`;
    const money = { ...owner, balance_account, currency, amount: `${amount}`, ...bank };
    const call = { ...omitUndefined(money), id, act: 'fund' } as const;
    await changeBalance(context, call, { operator, reason, approved_by }, 'Credited');
  },
});

const reverse = defineCommand({
  name: 'reverse',
  description:
    'undo a funding, an adjustment or a chargeback once, and show the balance after that',
  options: z.object({
    operation_id: Id.meta({ argument: true }),
    ...NOTED,
    approved_by: ApprovedBy,
  }),
  notes: ABOVE_LIMIT,
  example: 'balance reverse funded:wire-2026-03-01 --operator mia --reason "Typo"',
  run: async (context, { operation_id: id, ...note }) => {
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

/**
 * Acts on a balance, and prints it as it is then, or the approval that the act needs.
 * @throws ServiceError `operator_key_required`, and those of the act
 */
async function changeBalance(
  context: CliContext,
  call: BalanceCall,
  { approved_by, ...typed }: Note,
  done: string,
): Promise<void> {
  const livemode = await isLiveCall(await context.actingDeps(), call);
  const { deps, note: who, approval } = await openNoted(context, { livemode }, typed);
  if (livemode && typed.reason === undefined) {
    throw new ServiceError('invalid_usage', "required option '--reason <text>' not specified");
  }
  const note = omitUndefined({ ...who, approved_by: livemode ? undefined : approved_by });
  const result = await actOnBalance(deps, call, note, approval);
  if (isApprovalRequired(result)) return printApprovalRequired(context, result);
  const { posted, ...row } = result;
  printFields(context, { json: presentBalance(row) }, [
    ['Balance account', row.balance_account],
    [done, formatAmount(posted, row.currency)],
    ['Available', formatAmount(row.available, row.currency)],
    ['Reserved', formatAmount(row.reserved, row.currency)],
    ['Operation', row.operation_id],
  ]);
}

/** An asset counts in its smallest unit, as a text. */
function presentBalance<Row extends BalanceRow>(row: Row) {
  const { currency, available, reserved, ...rest } = row;
  const asset = parseBookCurrency(currency);
  if (asset !== undefined) {
    return { ...rest, ...asset, available: String(available), reserved: String(reserved) };
  }
  return { ...row, available: amountInJson(available), reserved: amountInJson(reserved) };
}

const post = defineCommand({
  name: 'post',
  description: "post what a bank moved of the service's own money",
  options: z.object({
    connector: Connector,
    env: Env.optional().describe('environment of the connector, which it has only one of'),
    kind: z.enum(PLATFORM_KINDS).describe('why it moved').meta({ placeholder: 'kind' }),
    amount: SignedAmount.describe('as the statement has it; below 0 leaves the account').meta({
      placeholder: 'minor',
    }),
    currency: Currency,
    bank_reference: BankReference,
    operation_id: OperationId.optional().describe('makes a repeat post nothing'),
    operator: Operator.optional(),
    reason: Reason,
  }),
  notes: `
Kinds: fee_sweep (fees that leave for an account that is not registered), interest (of the bank, or to it), transfer (one end
of a transfer between registered accounts), acquirer_payout (one end of what an acquirer pays out to a registered account). The
two ends of the last two have the same amount, with opposite signs. Each bank reference is posted once. ${ABOVE_LIMIT}`,
  example: `platform post --connector acme --kind fee_sweep --amount -125000 --currency EUR \\
    --bank-reference 2026-11-30/4 --reason "Fees of November"`,
  run: async (context, { operation_id, operator, reason, env, ...options }) => {
    const routes = readRoutes(context);
    const { connector, currency, kind, bank_reference, amount } = options;
    const livemode = env === undefined ? isLiveConnector(routes, connector) : isLive(env);
    assertServes(routes, { connector, livemode });
    const opened = await openNoted(context, { livemode }, { operator, reason });
    const { deps, note, approval } = opened;
    const id = operation_id ?? `post_${randomUUID()}`;
    const money = { livemode, connector, kind, currency, bank_reference };
    const call = { ...money, act: 'platform.post', id, amount: `${amount}` } as const;
    const result = await actOnBalance(deps, call, note, approval);
    if (isApprovalRequired(result)) return printApprovalRequired(context, result);
    const { operation_id: posted } = result;
    const json = { operation_id: posted, connector, env: toEnv(livemode), kind, amount, currency };
    printFields(context, { json: { ...json, bank_reference } }, [
      ['Posted', `${formatMoney(amount, currency)}, ${kind}`],
      ['Connector', `${connector}, ${json.env}`],
      ['Bank reference', bank_reference],
      ['Operation', posted],
    ]);
  },
});

export const platformCommands = defineGroup({
  name: 'platform',
  description: "the service's own money at its banks",
  commands: [post],
});
